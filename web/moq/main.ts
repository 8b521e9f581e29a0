// The page that publishes or views by Media over QUIC in Chromium, and reports what it does. It is served by the endpoint
// in the same host.

import type {
  CameraJob,
  Command,
  Job,
  Report,
  ShownReport,
  StatisticsReport,
} from "../src/generated/moq";
import { trialOffset } from "../webrtc/clock";
import type { Asked, Told } from "../webrtc/worker";
import type { Asked as Play, Told as Played } from "./player";
import { type Begin, Publisher } from "./publish";
import { refuse, Session } from "./session";
import { Viewer } from "./view";

const LOOK_EVERY_MS = 100;
const SEND_EVERY_MS = 200;
/** Limit on the entries of one report; the rest are dropped, and their number shows it. */
const ENTRIES_MAX = 2000;
/** Time and size before each object; `crates/moq/src/chromium/report.rs` reads it: big endian. */
const HEADER_BYTES = 8 + 4;

/** What an encoder or a decoder has done so far. */
interface Coder {
  readonly coded: number;
  readonly key_frames: number;
  /** The time that it took. */
  readonly coding_ms: number;
  readonly missed?: number;
}

interface State {
  readonly job: Job;
  readonly now: () => number;
  session: Session | null;
  readonly statistics: StatisticsReport[];
  readonly shown: ShownReport[];
  readonly objects: (DataView<ArrayBuffer> | Uint8Array<ArrayBuffer>)[];
  /** Frames that the camera missed. */
  missed: number;
  malformed: number;
  /** How often the decoder fell behind, and the frames that were given up then. */
  behind: number;
  given_up: number;
  end: Coder | null;
  failure: string | null;
  left_out: number;
}

async function main(job: Job): Promise<void> {
  const offset = await trialOffset();
  const state: State = {
    job,
    now: () => performance.now() + offset,
    session: null,
    statistics: [],
    shown: [],
    objects: [],
    missed: 0,
    malformed: 0,
    behind: 0,
    given_up: 0,
    end: null,
    failure: null,
    left_out: 0,
  };
  const fail = (error: unknown): void => {
    state.failure ??= String(error);
  };
  setInterval(() => send(state), SEND_EVERY_MS);
  setInterval(() => look(state).catch(() => {}), LOOK_EVERY_MS);
  try {
    const run =
      job.camera === null ? await viewer(state) : await publisher(state, job.camera, fail);
    await fetch("/ready", { method: "POST" });
    await begin();
    await run();
  } catch (error) {
    // Who watches when the relay ends has seen everything.
    if (!state.session?.ended) fail(error);
  }
}

/** Waits until the trial begins. */
async function begin(): Promise<void> {
  for (;;) {
    const response = await fetch("/next");
    if (response.status === 204) continue;
    const command = (await response.json()) as Command;
    if (command.do === "begin") return;
  }
}

function open(state: State): Session {
  const session = new Session(state.job, state.now, () => {
    const { ended } = session;
    if (ended !== null && !session.wasOpen) state.failure ??= `connecting to the relay: ${ended}`;
  });
  state.session = session;
  return session;
}

async function viewer(state: State): Promise<() => Promise<void>> {
  const player = await play(state);
  return async () => {
    const session = open(state);
    const viewer = new Viewer(session, state.now, {
      begins: (codec) => {
        const canvas = document.createElement("canvas");
        document.body.append(canvas);
        const screen = canvas.transferControlToOffscreen();
        player.postMessage({ ask: "begin", codec, screen } satisfies Play, [screen]);
      },
      came: (at_ms, object) => {
        const header = new DataView(new ArrayBuffer(HEADER_BYTES));
        header.setFloat64(0, at_ms);
        header.setUint32(8, object.length);
        state.objects.push(header, new Uint8Array(object));
        player.postMessage({ ask: "take", object, at_ms } satisfies Play);
      },
    });
    await session.open(
      (asked) => viewer.onAsked(asked).catch(() => {}),
      (group) => viewer.onGroup(group),
    );
    await viewer.run(state.job.broadcast);
  };
}

/** Starts the worker that decodes and shows, and waits until it is ready. */
async function play(state: State): Promise<Worker> {
  const worker = new Worker("/player.js");
  const end = { coded: 0, key_frames: 0, coding_ms: 0 };
  state.end = end;
  await new Promise<void>((resolve, reject) => {
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.addEventListener("message", ({ data }: MessageEvent<Played>) => {
      switch (data.told) {
        case "ready":
          return resolve();
        case "shown":
          Object.assign(end, data.coder);
          return push(state, state.shown, data.report);
        case "malformed":
          state.malformed += 1;
          return;
        case "behind":
          state.behind += 1;
          state.given_up += data.frames;
          return;
        case "failed":
          state.failure ??= data.reason;
          return reject(new Error(data.reason));
      }
    });
  });
  return worker;
}

async function publisher(
  state: State,
  camera: CameraJob,
  fail: (error: unknown) => void,
): Promise<() => Promise<void>> {
  const { epoch_unix_ms } = state.job;
  const publisher = new Publisher(camera, epoch_unix_ms, state.now, fail);
  await publisher.prepare();
  const { writable } = publisher;
  const job = { footage: camera.footage, pauses: camera.pauses, epoch_unix_ms };
  const { worker, begun } = await start(state, { ask: "camera", job, writable }, [writable]);
  state.end = publisher;
  return async () => {
    const session = open(state);
    await session.open(
      (asked) => {
        const isFirst = publisher.onAsked(session, asked);
        // The camera starts when somebody asks for its video.
        isFirst
          .then((first) => first && worker.postMessage({ ask: "start" } satisfies Asked))
          .catch(() => refuse(asked, "the request cannot be read"));
      },
      () => {},
    );
    await publisher.announce(session, state.job.broadcast);
    await publisher.run(begun);
  };
}

/** Starts the worker with the camera, and waits until it has its footage. */
async function start(
  state: State,
  asked: Asked,
  transfer: Transferable[],
): Promise<{ worker: Worker; begun: Promise<Begin> }> {
  const worker = new Worker("/worker.js");
  worker.postMessage(asked, transfer);
  let begins: (begin: Begin) => void;
  const begun = new Promise<Begin>((resolve) => {
    begins = resolve;
  });
  await new Promise<void>((resolve, reject) => {
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
      if (data.told === "ready") resolve();
      if (data.told === "begun") begins(data);
      if (data.told === "missed") state.missed = data.missed;
      if (data.told === "failed") {
        state.failure ??= data.reason;
        reject(new Error(data.reason));
      }
    });
  });
  return { worker, begun };
}

async function look(state: State): Promise<void> {
  const { session } = state;
  if (!session?.isOpen) return;
  const stats = await session.statistics();
  if (stats === null) return;
  const known = (name: string): number | null => {
    const value = stats[name];
    return typeof value === "number" && value >= 0 ? value : null;
  };
  push(state, state.statistics, {
    at_ms: state.now(),
    sent_packets: known("packetsSent"),
    sent_bytes: known("bytesSent"),
    received_bytes: known("bytesReceived"),
    lost_packets: known("packetsLost"),
    srtt_ms: known("smoothedRtt"),
    min_rtt_ms: known("minRtt"),
    send_bps: known("estimatedSendRate"),
    given_bytes: session.given_bytes,
    taken_bytes: session.taken_bytes,
    coded: state.end?.coded ?? 0,
    key_frames: state.end?.key_frames ?? 0,
    coding_ms: state.end?.coding_ms ?? 0,
    given_up: state.job.camera === null ? state.given_up : null,
  });
}

function push<T>(state: State, list: T[], entry: T): void {
  if (list.length < ENTRIES_MAX) list.push(entry);
  else state.left_out += 1;
}

function send(state: State): void {
  const { failure, left_out, malformed, behind, given_up, end } = state;
  const session = state.session?.report() ?? null;
  const missed = state.missed + (end?.missed ?? 0);
  const counted = { missed, coded: end?.coded ?? 0, malformed, behind, given_up };
  const statistics = state.statistics.splice(0);
  const shown = state.shown.splice(0);
  const report: Report = { session, statistics, shown, ...counted, failure, left_out };
  // The endpoint ends the browser, not the other way round: a report that fails is only lost.
  fetch("/report", { method: "POST", body: JSON.stringify(report) }).catch(() => {});
  if (state.objects.length === 0) return;
  fetch("/frames", { method: "POST", body: new Blob(state.objects.splice(0)) }).catch(() => {});
}

fetch("/job.json")
  .then((response) => response.json() as Promise<Job>)
  .then(main);
