// Alongside the page of a viewer: objects through a decoder of WebCodecs to a canvas, and what is read from there. What the
// page does meanwhile delays no frame.

import type { ShownReport } from "../src/generated/moq";
import { readStamp } from "../src/stamp";
import { trialOffset } from "../webrtc/clock";
import * as container from "./container";
import { Decoding, Order } from "./order";

/** The strip with the stamp is read at this size: blocks of 8 by 4 pixels. */
const WIDTH = 320;
const HEIGHT = 180;
const LINES = HEIGHT / 15;

export type Asked =
  | { readonly ask: "begin"; readonly codec: string; readonly screen: OffscreenCanvas }
  /** An object of the video that came. */
  | { readonly ask: "take"; readonly object: Uint8Array; readonly at_ms: number };
export type Told =
  | { readonly told: "ready" }
  | { readonly told: "shown"; readonly report: ShownReport; readonly coder: Coder }
  | { readonly told: "malformed" }
  /** The decoder fell behind: so many frames in it were given up. */
  | { readonly told: "behind"; readonly frames: number }
  | { readonly told: "failed"; readonly reason: string };

/** What the decoder has done so far. */
interface Coder {
  readonly coded: number;
  readonly key_frames: number;
  readonly coding_ms: number;
}

const tell = (told: Told): void => self.postMessage(told);
const fail = (error: unknown): void => tell({ told: "failed", reason: String(error) });

/** Decodes frames in order, and shows the newest whenever the screen is drawn. */
class Player {
  private readonly order = new Order();
  private readonly decoding = new Decoding();
  private readonly decoder: VideoDecoder;
  private readonly config: VideoDecoderConfig;
  private newest: VideoFrame | null = null;
  private readonly coder = { coded: 0, key_frames: 0, coding_ms: 0 };

  constructor(
    codec: string,
    canvas: OffscreenCanvas,
    private readonly now: () => number,
  ) {
    this.config = { codec, optimizeForLatency: true };
    this.decoder = new VideoDecoder({
      output: (frame) => {
        this.newest?.close();
        this.newest = frame;
        const now = this.now();
        const entered = this.decoding.entered(frame.timestamp);
        this.coder.coded += 1;
        if (entered !== null) {
          this.coder.key_frames += Number(entered.key);
          this.coder.coding_ms += now - entered.given_ms;
        }
        if (this.decoding.leaves(frame.timestamp, now)) this.skip();
      },
      error: fail,
    });
    this.decoder.configure(this.config);
    [canvas.width, canvas.height] = [WIDTH, HEIGHT];
    const strip = new OffscreenCanvas(WIDTH, LINES).getContext("2d", { willReadFrequently: true });
    const screen = canvas.getContext("2d");
    if (strip === null || screen === null) throw new Error("no canvas to show frames on");
    const draw = (): void => {
      const frame = this.newest;
      this.newest = null;
      if (frame !== null) this.show(frame, screen, strip);
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  }

  take(object: Uint8Array, at_ms: number): void {
    let picture: container.Picture;
    try {
      picture = container.read(object);
    } catch {
      tell({ told: "malformed" });
      return;
    }
    this.order.take(picture, at_ms);
    for (;;) {
      const given = this.order.give(at_ms);
      if (given === null || this.decoder.state !== "configured") return;
      // One that came before has waited for this one: the decoder is not to blame for that.
      const { time_us, key, data } = given;
      const behind = this.decoding.enters({ time_us, key, at_ms }, this.now());
      const type = key ? "key" : "delta";
      this.decoder.decode(new EncodedVideoChunk({ type, timestamp: time_us, data }));
      if (behind) this.skip();
    }
  }

  /** The decoder has fallen behind: what is in it is given up, until the next key frame. */
  private skip(): void {
    tell({ told: "behind", frames: this.decoding.size });
    this.decoding.clear();
    this.order.restart();
    this.decoder.reset();
    this.decoder.configure(this.config);
  }

  private show(
    frame: VideoFrame,
    screen: OffscreenCanvasRenderingContext2D,
    strip: OffscreenCanvasRenderingContext2D,
  ): void {
    const { displayWidth, displayHeight, timestamp } = frame;
    screen.drawImage(frame, 0, 0, WIDTH, HEIGHT);
    strip.drawImage(frame, 0, 0, displayWidth, displayHeight / 15, 0, 0, WIDTH, LINES);
    frame.close();
    const stamp = readStamp(strip.getImageData(0, 0, WIDTH, LINES), HEIGHT);
    const report = {
      time_us: timestamp,
      shown_ms: this.now(),
      frame: stamp?.frame ?? null,
      captured_unix_ms: stamp?.capturedMs ?? null,
    };
    tell({ told: "shown", report, coder: { ...this.coder } });
  }
}

async function main(): Promise<void> {
  const offset = await trialOffset();
  let player: Player | null = null;
  self.addEventListener("message", ({ data }: MessageEvent<Asked>) => {
    try {
      if (data.ask === "take") player?.take(data.object, data.at_ms);
      else player = new Player(data.codec, data.screen, () => performance.now() + offset);
    } catch (error) {
      fail(error);
    }
  });
  tell({ told: "ready" });
}

main().catch(fail);
