// In which order the frames of a video are decoded, and whether the decoder keeps up. Pure.
import type { Picture } from "./container";

/** A frame that has not come for so long after a later key frame is given up. */
const GIVEN_UP_MS = 2000;
/** Frames that wait for others at most. */
export const WAITING_MAX = 4096;
/** A frame that leaves the decoder this long after it could be decoded is late. */
const LATE_MS = 100;
/** The decoder does not keep up if every frame of so long a time is late. */
const LATE_FOR_MS = 500;

/** Gives a frame when nothing that it refers to is missing. */
export class Order {
  private readonly waiting = new Map<number, { picture: Picture; at_ms: number }>();
  /** The frame that is decoded next; null: any key frame. */
  private next: number | null = null;
  private unnumbered = 0;

  /** A frame has come. */
  take(picture: Picture, at_ms: number): void {
    const number = picture.mark?.number ?? this.unnumbered;
    this.unnumbered = number + 1;
    const late = this.next !== null && number < this.next;
    if (late || this.waiting.size >= WAITING_MAX) return;
    this.waiting.set(number, { picture, at_ms });
  }

  /** The next frame to decode, which may have waited for others until now; null: it has not come. */
  give(now_ms: number): Picture | null {
    const number = this.find(now_ms);
    if (number === null) return null;
    const found = this.waiting.get(number)?.picture ?? null;
    for (const other of this.waiting.keys()) if (other <= number) this.waiting.delete(other);
    this.next = number + 1;
    return found;
  }

  /** Goes on with a key frame that has come or comes next. */
  restart(): void {
    this.next = null;
    for (const [number, { picture }] of this.waiting) if (!picture.key) this.waiting.delete(number);
  }

  private find(now_ms: number): number | null {
    let first: number | null = null;
    for (const [number, { picture, at_ms }] of this.waiting) {
      const needs = number - (picture.mark?.references ?? (picture.key ? 0 : 1));
      // It refers to the last that was decoded, or it is the first key frame.
      const follows = this.next === null ? picture.key : !picture.key && needs === this.next - 1;
      const is_next = number === this.next && picture.key;
      const gives_up = this.next !== null && picture.key && now_ms - at_ms > GIVEN_UP_MS;
      if ((follows || is_next || gives_up) && (first === null || number < first)) first = number;
    }
    return first;
  }
}

/** A frame in a decoder: when it could be decoded, and when the decoder was given it. */
interface Entered {
  readonly key: boolean;
  readonly at_ms: number;
  readonly given_ms: number;
}

/** The frames in a decoder. */
export class Decoding {
  private readonly came = new Map<number, Entered>();
  private late_since: number | null = null;
  private begun = false;

  get size(): number {
    return this.came.size;
  }

  /** A frame goes in, which could be decoded from `at_ms` on. Whether the decoder has fallen behind. */
  enters(frame: { time_us: number; key: boolean; at_ms: number }, now_ms: number): boolean {
    const { time_us, key, at_ms } = frame;
    this.came.set(time_us, { key, at_ms, given_ms: now_ms });
    const [oldest] = this.came.values();
    // The first one also waits until the decoder is made.
    if (!this.begun || now_ms - (oldest?.at_ms ?? at_ms) <= LATE_MS) return false;
    return this.late(now_ms);
  }

  /** What is known of a frame that went in; null if it did not, or has come out. */
  entered(time_us: number): Entered | null {
    return this.came.get(time_us) ?? null;
  }

  /** A frame comes out, and with it what was before it. Whether the decoder has fallen behind. */
  leaves(time_us: number, now_ms: number): boolean {
    const at_ms = this.came.get(time_us)?.at_ms;
    for (const other of this.came.keys()) {
      this.came.delete(other);
      if (other === time_us) break;
    }
    const first = !this.begun;
    this.begun = true;
    if (!first && at_ms !== undefined && now_ms - at_ms > LATE_MS) return this.late(now_ms);
    this.late_since = null;
    return false;
  }

  /** All are given up. */
  clear(): void {
    this.came.clear();
    this.late_since = null;
  }

  /** A frame is late. Whether all have been for too long. */
  private late(now_ms: number): boolean {
    this.late_since ??= now_ms;
    return now_ms - this.late_since >= LATE_FOR_MS;
  }
}
