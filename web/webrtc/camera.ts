// A camera: footage that repeats, captured on the clock and stamped with number and time as `media::live` does.

import type { Footage, Pause } from "../src/generated/webrtc";
import { writeStamp } from "../src/stamp";

export interface CameraJob {
  readonly footage: Footage;
  /** By the trial's clock. */
  readonly pauses: readonly Pause[];
  readonly epoch_unix_ms: number;
}

/** Parts of the footage that are fetched before they are needed. */
const AHEAD = 4;

/** Whether a frame that is captured then falls into a pause. */
export function isPaused(pauses: readonly Pause[], captured_ms: number): boolean {
  return pauses.some(({ from_ms, to_ms }) => from_ms <= captured_ms && captured_ms < to_ms);
}

/** Whether a pause ends after one time, and by another at the latest. */
export function endsPause(pauses: readonly Pause[], after_ms: number, by_ms: number): boolean {
  return pauses.some(({ to_ms }) => after_ms < to_ms && to_ms <= by_ms);
}

/** How many frames fall into no pause, from one number on and before another. `captured` says when each is captured. */
export function outsidePauses(
  pauses: readonly Pause[],
  captured: (number: number) => number,
  from: number,
  before: number,
): number {
  let count = 0;
  for (let number = from; number < before; number++) {
    if (!isPaused(pauses, captured(number))) count += 1;
  }
  return count;
}

export class Camera {
  /** Parts that are at hand; each is fetched once. */
  private readonly parts = new Map<number, Uint8Array<ArrayBuffer>>();
  private readonly asked = new Set<number>();
  private readonly count: number;

  private constructor(
    private readonly job: CameraJob,
    private readonly writer: WritableStreamDefaultWriter<VideoFrame>,
    private readonly offset: number,
  ) {
    this.count = Math.ceil(job.footage.frames / job.footage.per_part);
  }

  /** A camera whose first frames are at hand; the others are fetched while it runs. */
  static async load(
    job: CameraJob,
    writable: WritableStream<VideoFrame>,
    offset: number,
  ): Promise<Camera> {
    const camera = new Camera(job, writable.getWriter(), offset);
    const first = Array.from({ length: AHEAD }, (_, part) => camera.fetch(part));
    await Promise.all(first);
    return camera;
  }

  /** Fetches a part, unless that was done before. */
  private async fetch(part: number): Promise<void> {
    const n = part % this.count;
    if (this.asked.has(n)) return;
    this.asked.add(n);
    const response = await fetch(`/footage/${n}`);
    if (!response.ok) throw new Error(`the footage: status ${response.status}`);
    this.parts.set(n, new Uint8Array(await response.arrayBuffer()));
  }

  /**
   * Captures until something fails: of the frames that are due, the newest, and none in a pause. `begun` hears when frame 0
   * is captured, by the clock of the frames' timestamps; `tell` how many were missed; `resumes` that the next frame ends a
   * pause.
   */
  async run(
    begun: (start_ms: number) => void,
    tell: (missed: number) => void,
    resumes: () => void,
  ): Promise<void> {
    const { pauses, footage } = this.job;
    const { fps, frames, per_part } = footage;
    const start = performance.now();
    begun(start);
    const captured = (number: number) => start + (number * 1e3) / fps + this.offset;
    let missed = 0;
    // By then, `resumes` has heard of each pause's end.
    let heard_ms = captured(0);
    let failure: unknown = null;
    for (let number = 0; failure === null; number++) {
      const wait = start + (number * 1e3) / fps - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      const newest = Math.floor(((performance.now() - start) * fps) / 1e3);
      // One that had to wait for the one before is missed.
      missed += outsidePauses(pauses, captured, number, newest);
      number = Math.max(newest, number);
      this.fetch(Math.floor((number % frames) / per_part) + AHEAD).catch((error) => {
        failure = error;
      });
      const paused = isPaused(pauses, captured(number));
      // In a pause, a frame before its end.
      const by_ms = captured(paused ? number + 1 : number);
      if (endsPause(pauses, heard_ms, by_ms)) resumes();
      heard_ms = by_ms;
      if (paused) continue;
      const frame = this.frame(number, start + (number * 1e3) / fps);
      if (frame !== null) await this.writer.write(frame);
      else missed += 1;
      tell(missed);
    }
    throw failure;
  }

  /** The frame of that number, captured at `due` of the page's clock; null if its part is not there yet. */
  private frame(number: number, due: number): VideoFrame | null {
    const { width, height, frames, per_part } = this.job.footage;
    const place = number % frames;
    const bytes = (width * height * 3) / 2;
    const part = this.parts.get(Math.floor(place / per_part));
    if (part === undefined) return null;
    const picture = part.subarray((place % per_part) * bytes, ((place % per_part) + 1) * bytes);
    const capturedMs = Math.floor(this.job.epoch_unix_ms + due + this.offset);
    writeStamp(picture, width, height, { frame: number, capturedMs });
    return new VideoFrame(picture, {
      format: "I420",
      codedWidth: width,
      codedHeight: height,
      timestamp: Math.round(due * 1e3),
    });
  }
}
