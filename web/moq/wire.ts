// How moq-transport writes things (draft-ietf-moq-transport-18 §1.4), as far as our page needs it.

/** Longest control message that is read, and longest object. */
const MESSAGE_MAX = 1 << 16;
const OBJECT_MAX = 16 << 20;

/** Bytes that are being written. */
export class Bytes {
  private readonly bytes: number[] = [];

  /** A number of up to 53 bits, whose leading ones say how many bytes follow the first. */
  number(value: number): this {
    let more = 0;
    while (more < 7 && value >= 2 ** (7 * (more + 1))) more++;
    const first = more === 7 ? 0 : Math.floor(value / 2 ** (8 * more));
    this.bytes.push(((0xff00 >> more) & 0xff) | first);
    for (let byte = more - 1; byte >= 0; byte--)
      this.bytes.push(Math.floor(value / 2 ** (8 * byte)) & 0xff);
    return this;
  }

  byte(value: number): this {
    this.bytes.push(value);
    return this;
  }

  /** Text with its length before it. */
  text(value: string): this {
    const bytes = new TextEncoder().encode(value);
    this.number(bytes.length).bytes.push(...bytes);
    return this;
  }

  /** The name of a broadcast, part by part. */
  namespace(name: string): this {
    const parts = name.split("/");
    this.number(parts.length);
    for (const part of parts) this.text(part);
    return this;
  }

  done(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.bytes);
  }
}

/** A control message: its type, the length of its body in two bytes, and the body. */
export function message(type: number, body: Bytes): Uint8Array<ArrayBuffer> {
  const bytes = body.done();
  const head = new Bytes()
    .number(type)
    .byte(bytes.length >> 8)
    .byte(bytes.length & 0xff);
  return concat(head.done(), bytes);
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Bytes of a stream, or of a message, in order. */
export class Reader {
  private waiting: Uint8Array[] = [];
  private length = 0;

  constructor(private readonly from: ReadableStreamDefaultReader<Uint8Array> | null) {}

  static of(bytes: Uint8Array): Reader {
    const reader = new Reader(null);
    reader.waiting = [bytes];
    reader.length = bytes.length;
    return reader;
  }

  /** Waits for so many bytes; whether there are. */
  private async fill(length: number): Promise<boolean> {
    while (this.length < length) {
      const next = await this.from?.read();
      if (next === undefined || next.done) return false;
      this.waiting.push(next.value);
      this.length += next.value.length;
    }
    return true;
  }

  /** Whether the stream has ended, and all was read. */
  async ended(): Promise<boolean> {
    return !(await this.fill(1));
  }

  async bytes(length: number): Promise<Uint8Array> {
    if (length > OBJECT_MAX)
      throw new Error(`expected at most ${OBJECT_MAX} bytes, found ${length}`);
    if (!(await this.fill(length))) throw new Error("a stream ended too early");
    const all =
      this.waiting.length === 1 ? (this.waiting[0] ?? new Uint8Array()) : concat(...this.waiting);
    this.waiting = [all.subarray(length)];
    this.length -= length;
    return all.subarray(0, length);
  }

  async byte(): Promise<number> {
    return (await this.bytes(1))[0] ?? 0;
  }

  async number(): Promise<number> {
    const first = await this.byte();
    let more = 0;
    while (more < 8 && first & (0x80 >> more)) more++;
    let value = more >= 7 ? 0 : first & (0x7f >> more);
    for (const byte of await this.bytes(more)) value = value * 256 + byte;
    if (value > Number.MAX_SAFE_INTEGER) throw new Error(`a number of ${value}`);
    return value;
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes(await this.number()));
  }

  async namespace(): Promise<string> {
    const parts: string[] = [];
    for (let left = await this.number(); left > 0; left--) {
      if (parts.length === 32) throw new Error("a namespace of more than 32 parts");
      parts.push(await this.text());
    }
    return parts.join("/");
  }

  /** A control message: its type, and its body. */
  async message(): Promise<{ type: number; body: Reader }> {
    const type = await this.number();
    const length = ((await this.byte()) << 8) | (await this.byte());
    return { type, body: Reader.of(await this.bytes(Math.min(length, MESSAGE_MAX))) };
  }
}
