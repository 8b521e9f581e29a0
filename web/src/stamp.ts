// A frame's number and capture time, read from the image itself.
//
// The strip along an image's top edge that `media::stamp` of the Rust side writes and describes. It
// has three rows of 40 blocks, the outer columns known. Between them are the frame (32 bits) and
// the time (44 bits) as Gray codes, a CRC-24 (RFC 4880 §6.1) and 14 zeros.

/** What a frame's stamp encodes. */
export interface Stamp {
  /** Number of the source frame. */
  frame: number;
  /** When it was captured, in milliseconds since the epoch of whoever wrote it. */
  capturedMs: number;
}

/** Pixels as a canvas gives them: red, green, blue, alpha, line by line. */
export interface Pixels {
  width: number;
  height: number;
  data: ArrayLike<number>;
}

const COLUMNS = 40;
const ROWS = 3;
const ROWS_PER_PICTURE = 45;
const WIDTH_MIN = 4 * COLUMNS;
const HEIGHT_MIN = 2 * ROWS_PER_PICTURE;
const CONTRAST_MIN = 48;
const DOUBTFUL_MAX = 2;
/** Luma of a 0 and of a 1, in the video range. */
const BLACK = 16;
const WHITE = 235;

/** Lines at the top of an image of this height that are all that `readStamp` needs of it. */
export function stampLines(height: number): number {
  return Math.ceil((height * ROWS) / ROWS_PER_PICTURE);
}

/**
 * Reads the stamp of an image `height` lines high, of which `pixels` has at least the first
 * `stampLines(height)`; null if there is none, or not enough of it is left.
 */
export function readStamp(pixels: Pixels, height: number = pixels.height): Stamp | null {
  const missing = pixels.height < stampLines(height) || pixels.data.length < 4 * area(pixels);
  if (pixels.width < WIDTH_MIN || height < HEIGHT_MIN || missing) return null;
  const levels = Array.from({ length: ROWS }, (_, row) =>
    Array.from({ length: COLUMNS }, (_, column) => level(pixels, height, row, column)),
  );
  // Odd rows begin with white and end with black, the others the other way round.
  const ends = levels.flatMap((row, index) => {
    const [first = 0, last = 0] = [row[0], row[COLUMNS - 1]];
    return index % 2 ? [{ black: last, white: first }] : [{ black: first, white: last }];
  });
  const black = ends.map((end) => end.black);
  const white = ends.map((end) => end.white);
  const low = mean(black);
  const contrast = mean(white) - low;
  if (contrast < CONTRAST_MIN) return null;
  // Three eighths of the way up is still black, five eighths already white.
  const bit = (value: number) => {
    const part = (value - low) / contrast;
    return part <= 3 / 8 ? 0 : part >= 5 / 8 ? 1 : null;
  };
  if (black.some((value) => bit(value) !== 0) || white.some((value) => bit(value) !== 1))
    return null;
  const bits = levels.flatMap((row) => row.slice(1, -1)).map(bit);
  return repair(bits);
}

/** Writes a stamp into an image in 8 bit 4:2:0: luma, then two planes of chroma, whose sides are even. */
export function writeStamp(picture: Uint8Array, width: number, height: number, stamp: Stamp): void {
  const data = [...bitsOf(gray(stamp.frame), 32), ...bitsOf(gray(stamp.capturedMs), 44)];
  const check = bitsOf(BigInt(crc24([0, 0, 0, 0, ...data])), 24);
  const bits = [...data, ...check, ...new Array(ROWS * (COLUMNS - 2) - data.length - 24).fill(0)];
  for (let row = 0; row < ROWS; row++) {
    const inner = bits.slice(row * (COLUMNS - 2), (row + 1) * (COLUMNS - 2));
    const blocks = row % 2 ? [1, ...inner, 0] : [0, ...inner, 1];
    const first = Math.floor((row * height) / ROWS_PER_PICTURE);
    const end = Math.floor(((row + 1) * height) / ROWS_PER_PICTURE);
    blocks.forEach((bit, column) => {
      const from = first * width + Math.floor((column * width) / COLUMNS);
      const to = first * width + Math.floor(((column + 1) * width) / COLUMNS);
      picture.fill(bit ? WHITE : BLACK, from, to);
    });
    for (let line = first + 1; line < end; line++)
      picture.copyWithin(line * width, first * width, (first + 1) * width);
  }
  const strip = Math.floor((ROWS * height) / ROWS_PER_PICTURE);
  const [luma, chroma] = [width * height, (width * height) / 4];
  const grey = (width / 2) * Math.ceil(strip / 2);
  for (const plane of [luma, luma + chroma]) picture.fill(128, plane, plane + grey);
}

function gray(value: number): bigint {
  const whole = BigInt(value);
  return whole ^ (whole >> 1n);
}

/** The bits of a number, the highest first. */
function bitsOf(value: bigint, count: number): number[] {
  return Array.from({ length: count }, (_, place) =>
    Number((value >> BigInt(count - 1 - place)) & 1n),
  );
}

/** Blocks between black and white are tried as both; too many of them are no stamp. */
function repair(bits: (0 | 1 | null)[]): Stamp | null {
  const doubtful = bits.flatMap((bit, place) => (bit === null ? [place] : []));
  if (doubtful.length > DOUBTFUL_MAX) return null;
  for (let choice = 0; choice < 1 << doubtful.length; choice++) {
    const tried = bits.map(
      (bit, place) => bit ?? (((choice >> doubtful.indexOf(place)) & 1) as 0 | 1),
    );
    const stamp = decode(tried);
    if (stamp) return stamp;
  }
  return null;
}

function area(pixels: Pixels): number {
  return pixels.width * pixels.height;
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Mean of the middle half of a block: where scaling and loop filters do not reach. */
function level(pixels: Pixels, height: number, row: number, column: number): number {
  const across = middle(column, pixels.width, COLUMNS);
  const down = middle(row, height, ROWS_PER_PICTURE);
  let sum = 0;
  for (let line = down.start; line < down.end; line++)
    for (let at = across.start; at < across.end; at++) {
      const place = 4 * (line * pixels.width + at);
      const [red = 0, green = 0, blue = 0] = [0, 1, 2].map((part) => pixels.data[place + part]);
      // ITU-R BT.709 luma; the strip is grey, for which every matrix gives the same.
      sum += 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    }
  return sum / ((down.end - down.start) * (across.end - across.start));
}

function middle(index: number, size: number, parts: number): { start: number; end: number } {
  const start = Math.ceil(((4 * index + 1) * size) / (4 * parts));
  const end = Math.floor(((4 * index + 3) * size) / (4 * parts));
  const centre = Math.floor(((2 * index + 1) * size) / (2 * parts));
  return start < end ? { start, end } : { start: centre, end: centre + 1 };
}

function decode(bits: number[]): Stamp | null {
  const data = bits.slice(0, 76);
  // The ten bytes that are checked begin with four bits of 0.
  const check = crc24([0, 0, 0, 0, ...data]);
  if (check !== number(bits.slice(76, 100)) || bits.slice(100).some(Boolean)) return null;
  return { frame: number(plain(data.slice(0, 32))), capturedMs: number(plain(data.slice(32))) };
}

/** The bits of the number that a Gray code stands for: each is the parity of those before it. */
function plain(gray: number[]): number[] {
  let parity = 0;
  return gray.map((bit) => {
    parity ^= bit;
    return parity;
  });
}

function number(bits: number[]): number {
  return bits.reduce((value, bit) => 2 * value + bit, 0);
}

function crc24(bits: number[]): number {
  return bits.reduce((register, bit) => {
    const carry = (register >> 23) ^ bit;
    return ((register << 1) & 0xffffff) ^ (carry ? 0x864cfb : 0);
  }, 0xb704ce);
}
