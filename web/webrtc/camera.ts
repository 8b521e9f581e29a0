// A camera: footage that repeats, captured on the clock and stamped with number and time as `media::live` does.

import type { Footage } from "../src/generated/webrtc";
import { writeStamp } from "../src/stamp";

export interface CameraJob {
  readonly footage: Footage;
  readonly epoch_unix_ms: number;
}

/** Parts of the footage that are fetched before they are needed. */
const AHEAD = 4;

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
   * Captures until something fails: of the frames that are due, the newest. `begun` hears when frame 0 is captured, by
   * the clock of the frames' timestamps; `tell` how many were missed.
   */
  async run(begun: (start_ms: number) => void, tell: (missed: number) => void): Promise<void> {
    const { fps, frames, per_part } = this.job.footage;
    const start = performance.now();
    begun(start);
    let missed = 0;
    let failure: unknown = null;
    for (let number = 0; failure === null; number++) {
      const wait = start + (number * 1e3) / fps - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      const newest = Math.floor(((performance.now() - start) * fps) / 1e3);
      // One that had to wait for the one before is missed.
      missed += Math.max(newest - number, 0);
      number = Math.max(newest, number);
      this.fetch(Math.floor((number % frames) / per_part) + AHEAD).catch((error) => {
        failure = error;
      });
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
