// A viewer: objects of a session through a decoder of WebCodecs to a canvas, and what is read from there.
import { readStamp } from "../src/stamp";
import * as container from "./container";
import type { ShownReport } from "./report";
import {
  type Asked,
  type Group,
  PUBLISH_NAMESPACE,
  REQUEST_OK,
  type Session,
  SUBSCRIBE,
} from "./session";
import { Bytes, message } from "./wire";

/** The strip with the stamp is read at this size: blocks of 8 by 4 pixels. */
const WIDTH = 320;
const HEIGHT = 180;
const LINES = HEIGHT / 15;
/** Parameters of SUBSCRIBE: its filter, and of the values of that what comes next. */
const FILTER = 0x21;
const NEXT_OBJECT = 0x2;
/** A frame that has not come for so long after a later key frame is given up. */
const GIVEN_UP_MS = 2000;
/** Frames that wait for others at most. */
const WAITING_MAX = 4096;

interface Catalog {
  readonly video?: { readonly renditions?: Readonly<Record<string, Rendition>> };
}
interface Rendition {
  readonly codec: string;
  readonly container?: string | { readonly kind: string };
  readonly description?: string;
  readonly bitrate?: number;
}

/** What a viewer tells of. */
export interface Told {
  shown(report: ShownReport): void;
  /** An object of the video came. */
  came(at_ms: number, object: Uint8Array): void;
  malformed(): void;
  fail(error: unknown): void;
}

export class Viewer {
  private readonly announced = new Map<string, () => void>();
  private readonly known = new Set<string>();
  /** Groups of tracks that no answer has named yet, and who takes those of the others. */
  private readonly early: Group[] = [];
  private readonly takers = new Map<number, (group: Group) => void>();
  private readonly player: Player;

  constructor(
    private readonly session: Session,
    private readonly now: () => number,
    private readonly told: Told,
  ) {
    this.player = new Player(now, told);
  }

  get coded(): number {
    return this.player.coded;
  }

  async onAsked({ type, body, send }: Asked): Promise<void> {
    // Every other request is one that a relay does not make of a viewer.
    if (type !== PUBLISH_NAMESPACE) return;
    await body.number();
    const name = await body.namespace();
    await send.write(message(REQUEST_OK, new Bytes().number(0)));
    this.known.add(name);
    this.announced.get(name)?.();
  }

  onGroup(group: Group): void {
    const taker = this.takers.get(group.alias);
    if (taker !== undefined) taker(group);
    else if (this.early.length < WAITING_MAX) this.early.push(group);
  }

  /** Watches a broadcast, from when it is announced. */
  async run(broadcast: string): Promise<void> {
    if (!this.known.has(broadcast))
      await new Promise<void>((resolve) => this.announced.set(broadcast, resolve));
    const catalog = await new Promise<Uint8Array>((resolve, reject) => {
      const first = (group: Group): void => {
        group.next().then((object) => (object === null ? null : resolve(object)), reject);
      };
      this.subscribe(broadcast, "catalog.json", false, first).catch(reject);
    });
    const { name, codec } = choose(JSON.parse(new TextDecoder().decode(catalog)) as Catalog);
    this.player.begin(codec);
    await this.subscribe(broadcast, name, true, (group) => this.receive(group));
  }

  /** Asks for a track: from its next object on, or for all that there is. */
  private async subscribe(
    broadcast: string,
    track: string,
    next: boolean,
    taker: (group: Group) => void,
  ): Promise<void> {
    const { body } = await this.session.request(SUBSCRIBE, (body) => {
      body.namespace(broadcast).text(track);
      return next ? body.number(1).number(FILTER).number(1).number(NEXT_OBJECT) : body.number(0);
    });
    const alias = await body.number();
    this.takers.set(alias, taker);
    for (const group of this.early.splice(0)) this.onGroup(group);
  }

  private async receive(group: Group): Promise<void> {
    try {
      for (;;) {
        const object = await group.next();
        if (object === null) return;
        const at_ms = this.now();
        this.told.came(at_ms, object);
        this.player.take(object, at_ms);
      }
    } catch {
      // A group that was given up, or whose stream was reset, ends without what is missing.
    }
  }
}

/** The track to play: of those in H.264 that we read, the one with the highest bit rate. */
export function choose(catalog: Catalog): { name: string; codec: string } {
  const all = Object.entries(catalog.video?.renditions ?? {});
  const playable = all.filter(([, { codec, container = "legacy", description }]) => {
    const kind = typeof container === "string" ? container : container.kind;
    return /^avc[13]\./.test(codec) && kind === "legacy" && description === undefined;
  });
  playable.sort(([, a], [, b]) => (b.bitrate ?? 0) - (a.bitrate ?? 0));
  const [best] = playable;
  if (best === undefined) throw new Error("the catalog has no video in H.264 that can be played");
  return { name: best[0], codec: best[1].codec.replace("avc3", "avc1") };
}

/** Puts frames in order, decodes them, and shows the newest whenever the screen is drawn. */
class Player {
  private readonly waiting = new Map<number, { picture: container.Picture; at_ms: number }>();
  /** The frame that is decoded next; null: any key frame. */
  private next: number | null = null;
  private unnumbered = 0;
  private decoder: VideoDecoder | null = null;
  private newest: VideoFrame | null = null;
  private readonly screen = document.createElement("canvas");
  private readonly strip = document.createElement("canvas");
  coded = 0;

  constructor(
    private readonly now: () => number,
    private readonly told: Told,
  ) {}

  begin(codec: string): void {
    this.decoder = new VideoDecoder({
      output: (frame) => {
        this.newest?.close();
        this.newest = frame;
        this.coded += 1;
      },
      error: (error) => this.told.fail(error),
    });
    this.decoder.configure({ codec, optimizeForLatency: true });
    [this.strip.width, this.strip.height] = [WIDTH, LINES];
    [this.screen.width, this.screen.height] = [WIDTH, HEIGHT];
    document.body.append(this.screen);
    const strip = this.strip.getContext("2d", { willReadFrequently: true });
    const screen = this.screen.getContext("2d");
    if (strip === null || screen === null) throw new Error("no canvas to show frames on");
    const draw = (at: number): void => {
      const frame = this.newest;
      this.newest = null;
      if (frame !== null) this.show(frame, at - performance.now() + this.now(), screen, strip);
      requestAnimationFrame(draw);
    };
    requestAnimationFrame(draw);
  }

  private show(
    frame: VideoFrame,
    shown_ms: number,
    screen: CanvasRenderingContext2D,
    strip: CanvasRenderingContext2D,
  ): void {
    const { displayWidth, displayHeight, timestamp } = frame;
    screen.drawImage(frame, 0, 0, WIDTH, HEIGHT);
    strip.drawImage(frame, 0, 0, displayWidth, displayHeight / 15, 0, 0, WIDTH, LINES);
    frame.close();
    const stamp = readStamp(strip.getImageData(0, 0, WIDTH, LINES), HEIGHT);
    this.told.shown({
      time_us: timestamp,
      // The frame of the screen that has the picture began before it was decoded.
      shown_ms: Math.max(shown_ms, this.now()),
      frame: stamp?.frame ?? null,
      captured_unix_ms: stamp?.capturedMs ?? null,
    });
  }

  take(object: Uint8Array, at_ms: number): void {
    let picture: container.Picture;
    try {
      picture = container.read(object);
    } catch {
      this.told.malformed();
      return;
    }
    const number = picture.mark?.number ?? this.unnumbered;
    this.unnumbered = number + 1;
    const late = this.next !== null && number < this.next;
    if (late || this.waiting.size >= WAITING_MAX) return;
    this.waiting.set(number, { picture, at_ms });
    this.advance(at_ms);
  }

  /** Decodes what refers to nothing that is missing. */
  private advance(now_ms: number): void {
    for (;;) {
      const number = this.find(now_ms);
      if (number === null) return;
      const { picture } = this.waiting.get(number) ?? {};
      for (const other of this.waiting.keys()) if (other <= number) this.waiting.delete(other);
      this.next = number + 1;
      if (picture === undefined || this.decoder?.state !== "configured") return;
      const { time_us, key, data } = picture;
      const type = key ? "key" : "delta";
      this.decoder.decode(new EncodedVideoChunk({ type, timestamp: time_us, data }));
    }
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
