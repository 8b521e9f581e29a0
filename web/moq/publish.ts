// A publisher: the camera's track through an encoder of WebCodecs into groups of a session.

import type { CameraJob } from "../src/generated/moq";
import * as container from "./container";
import {
  type Asked,
  PUBLISH_NAMESPACE,
  refuse,
  type Session,
  SUBSCRIBE,
  SUBSCRIBE_OK,
} from "./session";
import { Bytes, message } from "./wire";

/** What the breakout box has and the types of the DOM do not know. */
interface TrackGenerator extends MediaStreamTrack {
  readonly writable: WritableStream<VideoFrame>;
}
declare const MediaStreamTrackGenerator: new (init: { kind: "video" }) => TrackGenerator;
declare const MediaStreamTrackProcessor: new (init: {
  track: MediaStreamTrack;
  maxBufferSize: number;
}) => { readonly readable: ReadableStream<VideoFrame> };

/** Frames that the encoder may have before it; further ones are missed. */
const ENCODING_MAX = 4;

/** When the camera's frame 0 was captured, by the clock of frames' timestamps, and how far the trial's is ahead of that. */
export interface Begin {
  readonly start_ms: number;
  readonly offset_ms: number;
}

/** A frame on its way through the encoder. */
interface Encoding {
  readonly number: number;
  /** By the trial's clock. */
  readonly captured_ms: number;
  /** When the encoder was given it. */
  readonly given_ms: number;
}

/** Who has asked for the video: the name of the track in their groups, and the group that is being sent. */
interface Subscriber {
  readonly session: Session;
  readonly alias: number;
  group: number;
  send: Promise<(object: Uint8Array | null) => void> | null;
}

export class Publisher {
  private readonly track = new MediaStreamTrackGenerator({ kind: "video" });
  private readonly subscribers: Subscriber[] = [];
  private readonly encoding = new Map<number, Encoding>();
  private aliases = 0;
  private encoder: VideoEncoder | null = null;
  /** When the last key frame was captured, and the number of the last frame that was encoded. */
  private key_ms: number | null = null;
  private last = 0;
  /** When the last frame was captured. */
  private before_ms = Number.POSITIVE_INFINITY;
  missed = 0;
  coded = 0;
  key_frames = 0;
  coding_ms = 0;

  constructor(
    private readonly job: CameraJob,
    private readonly epoch_unix_ms: number,
    private readonly now: () => number,
    private readonly fail: (error: unknown) => void,
  ) {}

  /** Where the camera writes its frames. */
  get writable(): WritableStream<VideoFrame> {
    return this.track.writable;
  }

  /** Makes the encoder. */
  async prepare(): Promise<void> {
    const { footage, codec, rate_bps } = this.job;
    const config: VideoEncoderConfig = {
      codec,
      width: footage.width,
      height: footage.height,
      framerate: footage.fps,
      bitrate: rate_bps,
      bitrateMode: "constant",
      latencyMode: "realtime",
      avc: { format: "annexb" },
    };
    const { supported } = await VideoEncoder.isConfigSupported(config);
    if (!supported) throw new Error(`this Chromium has no encoder for ${codec} in WebCodecs`);
    this.encoder = new VideoEncoder({
      output: (chunk) => this.onEncoded(chunk),
      error: (error) => this.fail(error),
    });
    this.encoder.configure(config);
  }

  /** Announces the broadcast to the relay. */
  async announce(session: Session, broadcast: string): Promise<void> {
    await session.request(PUBLISH_NAMESPACE, (body) => body.namespace(broadcast).number(0));
  }

  /** Answers a request; whether it was the first one for the video. */
  async onAsked(session: Session, asked: Asked): Promise<boolean> {
    const { type, body, send } = asked;
    if (type !== SUBSCRIBE) {
      refuse(asked, "this publisher keeps no objects");
      return false;
    }
    await body.number();
    await body.namespace();
    const name = await body.text();
    if (name !== "catalog.json" && name !== "video") {
      refuse(asked, `there is no track ${name}`);
      return false;
    }
    const alias = ++this.aliases;
    await send.write(message(SUBSCRIBE_OK, new Bytes().number(alias).number(0)));
    if (name === "video") {
      // A decoder can begin at a key frame only.
      this.key_ms = null;
      return this.subscribers.push({ session, alias, group: 0, send: null }) === 1;
    }
    const catalog = await session.group(alias, 0);
    catalog(new TextEncoder().encode(this.job.catalog));
    catalog(null);
    return false;
  }

  /** Encodes what the camera sees, until something fails. `begun` is ready when the camera has begun. */
  async run(begun: Promise<Begin>): Promise<void> {
    const processor = new MediaStreamTrackProcessor({
      track: this.track,
      maxBufferSize: ENCODING_MAX,
    });
    const frames = processor.readable.getReader();
    const { start_ms, offset_ms } = await begun;
    for (;;) {
      const { value: frame, done } = await frames.read();
      if (done) return;
      const due_ms = frame.timestamp / 1e3;
      const number = Math.round(((due_ms - start_ms) * this.job.footage.fps) / 1e3);
      this.encode(frame, { number, captured_ms: due_ms + offset_ms, given_ms: this.now() });
      frame.close();
    }
  }

  private encode(frame: VideoFrame, frameIs: Encoding): void {
    const { encoder, job, key_ms } = this;
    if (encoder === null || encoder.encodeQueueSize >= ENCODING_MAX) {
      this.missed += 1;
      return;
    }
    const since = key_ms === null ? Number.POSITIVE_INFINITY : frameIs.captured_ms - key_ms;
    const { before_ms } = this;
    this.before_ms = frameIs.captured_ms;
    const resumes = job.pauses.some(
      ({ to_ms }) => before_ms < to_ms && to_ms <= frameIs.captured_ms,
    );
    // The next frame would be too late.
    const keyFrame = resumes || since + 500 / job.footage.fps >= job.key_every_ms;
    if (keyFrame) this.key_ms = frameIs.captured_ms;
    this.encoding.set(frame.timestamp, frameIs);
    encoder.encode(frame, { keyFrame });
  }

  private onEncoded(chunk: EncodedVideoChunk): void {
    const frame = this.encoding.get(chunk.timestamp);
    if (frame === undefined) return;
    for (const timestamp of this.encoding.keys())
      if (timestamp <= chunk.timestamp) this.encoding.delete(timestamp);
    const data = new Uint8Array(chunk.byteLength);
    chunk.copyTo(data);
    const key = chunk.type === "key";
    const mark = {
      number: frame.number,
      references: key ? 0 : frame.number - this.last,
      rate_bps: this.job.rate_bps,
      waited_ms: this.now() - frame.captured_ms,
    };
    [this.last, this.coded] = [frame.number, this.coded + 1];
    this.key_frames += Number(key);
    this.coding_ms += this.now() - frame.given_ms;
    const time_us = Math.round((this.epoch_unix_ms + frame.captured_ms) * 1e3);
    const object = container.write(time_us, mark, data);
    for (const subscriber of this.subscribers) this.send(subscriber, object, key);
  }

  private send(subscriber: Subscriber, object: Uint8Array, key: boolean): void {
    const each = this.job.streams === "frame";
    if (each || key) {
      subscriber.send?.then((send) => send(null)).catch(() => {});
      subscriber.send = subscriber.session.group(subscriber.alias, subscriber.group++);
    }
    subscriber.send?.then((send) => send(object)).catch(() => {});
    if (each) {
      subscriber.send?.then((send) => send(null)).catch(() => {});
      subscriber.send = null;
    }
  }
}
