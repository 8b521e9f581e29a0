// A session of moq-transport (draft 18) over WebTransport: as much of it as a publisher and a viewer of one broadcast
// need. Every request is a bidirectional stream, every group of objects a unidirectional one.
import type { Job, SessionReport } from "../src/generated/moq";
import { Bytes, concat, message, Reader } from "./wire";

/** Types of messages (§9), and of streams (§10). */
export const SETUP = 0x2f00;
export const SUBSCRIBE = 0x3;
export const SUBSCRIBE_OK = 0x4;
export const REQUEST_ERROR = 0x5;
export const PUBLISH_NAMESPACE = 0x6;
export const REQUEST_OK = 0x7;
const SUBSCRIBE_NAMESPACE = 0x50;
/** A stream of a group: with the end of the group, its first object, and a priority. */
const GROUP = 0x58;
/** Bits of such a type: objects have properties, an explicit subgroup, no priority. */
const PROPERTIES = 0x1;
const SUBGROUP = 0x4;
const NO_PRIORITY = 0x20;
const NOT_SUPPORTED = 0x3;

/** Members that the types of the DOM do not have. */
interface Transport extends WebTransport {
  readonly protocol?: string;
  readonly congestionControl?: string;
  getStats?(): Promise<Record<string, unknown>>;
}
declare const WebTransport: new (url: string, options: object) => Transport;

/** What the other end asks for. */
export interface Asked {
  readonly type: number;
  readonly body: Reader;
  readonly send: WritableStreamDefaultWriter<Uint8Array>;
}

/** A group that came, before its first object. */
export interface Group {
  readonly alias: number;
  readonly group: number;
  /** The next object; null at the group's end. */
  next(): Promise<Uint8Array | null>;
}

export class Session {
  readonly opened_ms: number;
  private readonly transport: Transport;
  private connected_ms: number | null = null;
  private set_up_ms: number | null = null;
  private over: { ended_ms: number; ended: string } | null = null;
  private requests = 0;
  private streams = 0;
  /** Streams that stay open as long as their requests: one that nobody holds would be reset. */
  private readonly kept: unknown[] = [];
  given_bytes = 0;
  taken_bytes = 0;

  constructor(
    job: Job,
    private readonly now: () => number,
    private readonly changed: () => void,
  ) {
    this.opened_ms = now();
    const value = new Uint8Array(job.certificate);
    this.transport = new WebTransport(job.url, {
      serverCertificateHashes: [{ algorithm: "sha-256", value }],
      protocols: [job.protocol],
      congestionControl: job.congestion,
    });
    this.transport.closed.then(
      ({ reason = "", closeCode = 0 }) => this.end(`closed by peer: ${reason} (code ${closeCode})`),
      (error) => this.end(String(error)),
    );
  }

  private end(ended: string): void {
    this.over ??= { ended_ms: this.now(), ended };
    this.changed();
  }

  get isOpen(): boolean {
    return this.set_up_ms !== null && this.over === null;
  }

  /** Whether it was ever set up. */
  get wasOpen(): boolean {
    return this.set_up_ms !== null;
  }

  /** Why the session has ended; null if it has not. */
  get ended(): string | null {
    return this.over?.ended ?? null;
  }

  /** Sets the session up. `asked` hears of every request, `group` of every group that comes. */
  async open(asked: (asked: Asked) => void, group: (group: Group) => void): Promise<void> {
    await this.transport.ready;
    this.connected_ms = this.now();
    this.changed();
    const control = (await this.uni()).getWriter();
    this.kept.push(control);
    await control.write(message(SETUP, new Bytes()));
    await new Promise<void>((resolve, reject) => {
      this.transport.closed.then(() => reject(new Error(this.ended ?? "closed")), reject);
      // Streams fail when the session ends, which `closed` reports.
      this.incoming<ReadableStream<Uint8Array>>(
        this.transport.incomingUnidirectionalStreams,
        (stream) => this.onUni(stream, resolve, group),
      );
      this.incoming<WebTransportBidirectionalStream>(
        this.transport.incomingBidirectionalStreams,
        (stream) => this.onBidi(stream, asked),
      );
    });
    this.set_up_ms = this.now();
    this.changed();
  }

  private async incoming<T>(
    streams: ReadableStream,
    each: (stream: T) => Promise<void>,
  ): Promise<void> {
    const reader: ReadableStreamDefaultReader<T> = streams.getReader();
    for (;;) {
      const next = await reader.read().catch(() => null);
      if (next === null || next.done) return;
      // One that is reset ends alone.
      each(next.value).catch(() => {});
    }
  }

  private async onUni(
    stream: ReadableStream<Uint8Array>,
    isSetUp: () => void,
    group: (group: Group) => void,
  ): Promise<void> {
    const reader = new Reader(stream.getReader());
    const type = await reader.number();
    if (type === SETUP) {
      await reader.bytes(((await reader.byte()) << 8) | (await reader.byte()));
      return isSetUp();
    }
    if ((type & 0x90) !== 0x10) return stream.cancel().catch(() => {});
    const [alias, number] = [await reader.number(), await reader.number()];
    if (type & SUBGROUP) await reader.number();
    if (!(type & NO_PRIORITY)) await reader.byte();
    group({ alias, group: number, next: () => object(reader, (type & PROPERTIES) !== 0) });
  }

  private async onBidi(
    stream: WebTransportBidirectionalStream,
    asked: (asked: Asked) => void,
  ): Promise<void> {
    const reader = new Reader(stream.readable.getReader());
    const send: WritableStreamDefaultWriter<Uint8Array> = stream.writable.getWriter();
    const { type, body } = await reader.message();
    this.kept.push(reader, send);
    if (type === SUBSCRIBE_NAMESPACE) await send.write(message(REQUEST_OK, new Bytes().number(0)));
    else asked({ type, body, send });
  }

  private async uni(): Promise<WritableStream<Uint8Array>> {
    this.streams += 1;
    return this.transport.createUnidirectionalStream();
  }

  /** Sends a request: the number of the request is at its beginning. The type and the body of the answer. */
  async request(
    type: number,
    fill: (body: Bytes) => Bytes,
  ): Promise<{ type: number; body: Reader }> {
    this.streams += 1;
    const body = fill(new Bytes().number(2 * this.requests++));
    const stream = await this.transport.createBidirectionalStream();
    const send: WritableStreamDefaultWriter<Uint8Array> = stream.writable.getWriter();
    await send.write(message(type, body));
    const reader = new Reader(stream.readable.getReader());
    this.kept.push(reader, send);
    const answer = await reader.message();
    if (answer.type !== REQUEST_ERROR) return answer;
    const code = await answer.body.number();
    await answer.body.number();
    throw new Error(`the relay refused: ${await answer.body.text()} (code ${code})`);
  }

  /** Begins a group: a stream that takes objects, and ends with null. */
  async group(alias: number, number: number): Promise<(object: Uint8Array | null) => void> {
    const writer = (await this.uni()).getWriter();
    let head = new Bytes().number(GROUP).number(alias).number(number).byte(128);
    return (object) => {
      // A session that has ended reports that through `closed`.
      if (object === null) return void writer.close().catch(() => {});
      // Objects are numbered by their distance less one.
      const bytes = concat(head.number(0).number(object.length).done(), object);
      head = new Bytes();
      this.given_bytes += bytes.length;
      const taken = (): void => {
        this.taken_bytes += bytes.length;
      };
      writer.write(bytes).then(taken, () => {});
    };
  }

  async statistics(): Promise<Record<string, unknown> | null> {
    return (await this.transport.getStats?.()) ?? null;
  }

  report(): SessionReport {
    const { opened_ms, connected_ms, set_up_ms, streams, transport } = this;
    const { ended_ms, ended } = this.over ?? { ended_ms: null, ended: null };
    const protocol = transport.protocol || null;
    const congestion = transport.congestionControl ?? null;
    const times = { opened_ms, connected_ms, set_up_ms, ended_ms, ended };
    return { ...times, protocol, congestion, streams };
  }
}

/** The next object of a group: its distance, properties, size, and what it holds. */
async function object(reader: Reader, properties: boolean): Promise<Uint8Array | null> {
  if (await reader.ended()) return null;
  await reader.number();
  if (properties) await reader.bytes(await reader.number());
  const size = await reader.number();
  if (size > 0) return reader.bytes(size);
  // Without a payload there is a status: of the end of the group, mostly.
  return (await reader.number()) === 0 ? new Uint8Array() : null;
}

/** Refuses a request. */
export function refuse({ send }: Asked, reason: string): void {
  const body = new Bytes().number(NOT_SUPPORTED).number(0).text(reason);
  send.write(message(REQUEST_ERROR, body)).catch(() => {});
  send.close().catch(() => {});
}
