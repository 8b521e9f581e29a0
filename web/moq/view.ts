// A viewer: the objects of a session, for the player in its worker.
import { WAITING_MAX } from "./order";
import {
  type Asked,
  type Group,
  PUBLISH_NAMESPACE,
  REQUEST_OK,
  type Session,
  SUBSCRIBE,
} from "./session";
import { Bytes, message } from "./wire";

/** Parameters of SUBSCRIBE: its filter, and of the values of that what comes next. */
const FILTER = 0x21;
const NEXT_OBJECT = 0x2;

interface Catalog {
  readonly video?: { readonly renditions?: Readonly<Record<string, Rendition>> };
}
interface Rendition {
  readonly codec: string;
  readonly container?: string | { readonly kind: string };
  readonly description?: string;
  readonly bitrate?: number;
}

/** What a viewer reports. */
export interface Told {
  /** The codec of the video that comes. */
  begins(codec: string): void;
  /** An object of the video came. */
  came(at_ms: number, object: Uint8Array): void;
}

export class Viewer {
  private readonly announced = new Map<string, () => void>();
  private readonly known = new Set<string>();
  /** Groups of tracks that no answer has named yet, and who takes those of the others. */
  private readonly early: Group[] = [];
  private readonly takers = new Map<number, (group: Group) => void>();

  constructor(
    private readonly session: Session,
    private readonly now: () => number,
    private readonly told: Told,
  ) {}

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
    this.told.begins(codec);
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
        this.told.came(this.now(), object);
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
