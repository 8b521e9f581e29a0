// What an object of a video track holds, as `crates/moq/src/container.rs` describes it: a time, our frame mark as an SEI
// message, and a coded frame.

/** What is known of a frame besides its image. */
export interface Mark {
  readonly number: number;
  /** How many frames before it the one is that it needs; 0 of a key frame. */
  readonly references: number;
  readonly rate_bps: number;
  /** From its capture until it left. */
  readonly waited_ms: number;
}

export interface Picture {
  /** Microseconds since 1970. */
  readonly time_us: number;
  readonly mark: Mark | null;
  readonly key: boolean;
  /** The coded frame, in the byte stream format. */
  readonly data: Uint8Array;
}

const UUID = new TextEncoder().encode("suiro-frame-mark");
const MARK_BYTES = 11;
const HEAD = [0, 0, 0, 1, 6, 5, UUID.length + MARK_BYTES];
const STOP = 0x80;
/** Units of 20 µs, of which the last stands for more than fits. */
const WAITS_PER_MS = 50;
const WAITED_LONG = 0xffff;
/** NAL unit type of an IDR picture, which refers to no other (ITU-T H.264 table 7-1). */
const IDR = 5;

export function write(time_us: number, mark: Mark, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const fields = new DataView(new ArrayBuffer(MARK_BYTES));
  fields.setUint32(0, mark.number);
  fields.setUint8(4, Math.min(mark.references, 255));
  fields.setUint32(5, Math.min(mark.rate_bps, 2 ** 32 - 1));
  fields.setUint16(
    9,
    Math.min(Math.round(Math.max(mark.waited_ms, 0) * WAITS_PER_MS), WAITED_LONG),
  );
  const sei = escaped([...UUID, ...new Uint8Array(fields.buffer), STOP]);
  const object = new Uint8Array(8 + HEAD.length + sei.length + data.length);
  // RFC 9000 §16: a varint of eight bytes begins with the bits 11.
  new DataView(object.buffer).setBigUint64(0, BigInt(Math.round(time_us)) | (3n << 62n));
  object.set(HEAD, 8);
  object.set(sei, 8 + HEAD.length);
  object.set(data, 8 + HEAD.length + sei.length);
  return object;
}

/** ITU-T H.264 §7.4.1: no start code within a NAL unit. */
function escaped(payload: readonly number[]): number[] {
  const bytes: number[] = [];
  let zeros = 0;
  for (const byte of payload) {
    if (zeros === 2 && byte <= 3) {
      bytes.push(3);
      zeros = 0;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    bytes.push(byte);
  }
  return bytes;
}

export function read(object: Uint8Array): Picture {
  const length = 1 << ((object[0] ?? 0) >> 6);
  if (object.length < length) throw new Error("an object ends within its timestamp");
  let time_us = (object[0] ?? 0) & 0x3f;
  for (const byte of object.subarray(1, length)) time_us = time_us * 256 + byte;
  const rest = object.subarray(length);
  const [mark, data] = marked(rest) ?? [null, rest];
  return { time_us, mark, key: types(data).includes(IDR), data };
}

function marked(data: Uint8Array): [Mark, Uint8Array] | null {
  if (HEAD.some((byte, at) => data[at] !== byte)) return null;
  const payload = new Uint8Array(UUID.length + MARK_BYTES + 1);
  let at = HEAD.length;
  for (let read = 0, zeros = 0; read < payload.length; at++) {
    const byte = data[at];
    if (byte === undefined) return null;
    if (zeros === 2 && byte === 3) {
      zeros = 0;
      continue;
    }
    zeros = byte === 0 ? zeros + 1 : 0;
    payload[read++] = byte;
  }
  if (UUID.some((byte, at) => payload[at] !== byte)) return null;
  const fields = new DataView(payload.buffer, UUID.length);
  const mark = {
    number: fields.getUint32(0),
    references: fields.getUint8(4),
    rate_bps: fields.getUint32(5),
    waited_ms: fields.getUint16(9) / WAITS_PER_MS,
  };
  return [mark, data.subarray(at)];
}

/** The types of NAL units in the byte stream format. */
export function types(data: Uint8Array): number[] {
  const found: number[] = [];
  for (let at = 0; at + 3 < data.length; at++)
    if (data[at] === 0 && data[at + 1] === 0 && data[at + 2] === 1)
      found.push((data[at + 3] ?? 0) & 0x1f);
  return found;
}
