// The page that is an end of a WebRTC connection in Chromium, and reports what it does. It is served by the endpoint
// in the same host.

import type { Command, Job, Report, ShownReport, StatisticsReport } from "../src/generated/webrtc";
import { trialOffset } from "./clock";
import { Publisher } from "./publish";
import { Session } from "./session";
import { statistics } from "./statistics";
import { receive, want, watch } from "./view";
import type { Asked, Told } from "./worker";

const LOOK_EVERY_MS = 100;
const SEND_EVERY_MS = 200;
/** Limit on the entries of one report; the rest are dropped, and their number shows it. */
const ENTRIES_MAX = 2000;
/** The session of an offer that the page makes itself. */
const OWN = 1;

interface State {
  readonly job: Job;
  readonly now: () => number;
  readonly sessions: Map<number, Session>;
  readonly statistics: StatisticsReport[];
  readonly shown: ShownReport[];
  changed: boolean;
  missed: number;
  failure: string | null;
  left_out: number;
}

/** An end of the video: how a session is made to send or to receive it. */
interface End {
  /** Before an offer is made. */
  offer(session: Session): void;
  /** Before an offer is answered, and when its media are there. */
  expect(session: Session): void;
  answer(session: Session): Promise<void>;
  /** Media can flow. */
  connected(session: Session): void;
}

async function main(job: Job): Promise<void> {
  const offset = await trialOffset();
  const state: State = {
    job,
    now: () => performance.now() + offset,
    sessions: new Map(),
    statistics: [],
    shown: [],
    changed: false,
    missed: 0,
    failure: null,
    left_out: 0,
  };
  const fail = (error: unknown): void => {
    state.failure ??= String(error);
  };
  setInterval(() => send(state), SEND_EVERY_MS);
  setInterval(() => look(state).catch(fail), LOOK_EVERY_MS);
  try {
    const end =
      job.role === "publisher" ? await publisher(state, fail) : await viewer(state, offset);
    await fetch("/ready", { method: "POST" });
    await obey(state, end, fail);
  } catch (error) {
    fail(error);
  }
}

async function viewer(state: State, offset: number): Promise<End> {
  const worker = await start(state, { ask: "frames" });
  const video = document.createElement("video");
  video.muted = true;
  video.autoplay = true;
  document.body.append(video);
  watch(video, offset, (report) => push(state, state.shown, report));
  return {
    offer: (session) => want(session, state.job.codec, video, worker),
    expect: (session) => receive(session, video, worker),
    answer: async () => {},
    connected: () => {},
  };
}

async function publisher(state: State, fail: (error: unknown) => void): Promise<End> {
  const { codec, footage, pauses, epoch_unix_ms, max_bps, key_every_ms } = state.job;
  if (footage === null) throw new Error("a publisher needs footage");
  const source = new Publisher(codec, max_bps, key_every_ms);
  const { writable } = source;
  const job = { footage, pauses, epoch_unix_ms };
  const worker = await start(state, { ask: "camera", job, writable }, [writable]);
  worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
    if (data.told !== "resumes") return;
    for (const session of state.sessions.values())
      if (session.isConnected) source.askForKeyFrame(session, fail);
  });
  let runs = false;
  return {
    offer: (session) => source.offer(session),
    expect: () => {},
    answer: (session) => source.answer(session),
    connected: (session) => {
      source.connected(session, fail);
      if (!runs) worker.postMessage({ ask: "start" } satisfies Asked);
      runs = true;
    },
  };
}

/** Starts the worker, and waits until it has what it needs. */
function start(state: State, asked: Asked, transfer: Transferable[] = []): Promise<Worker> {
  const worker = new Worker("/worker.js");
  worker.postMessage(asked, transfer);
  return new Promise((resolve, reject) => {
    worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    worker.addEventListener("message", ({ data }: MessageEvent<Told>) => {
      if (data.told === "ready") resolve(worker);
      if (data.told === "missed") state.missed = data.missed;
      if (data.told === "failed") {
        state.failure ??= data.reason;
        reject(new Error(data.reason));
      }
    });
  });
}

/** Does what the endpoint asks for, for ever. */
async function obey(state: State, end: End, fail: (error: unknown) => void): Promise<void> {
  for (;;) {
    const response = await fetch("/next");
    if (response.status === 204) continue;
    const command = (await response.json()) as Command;
    if (command.do === "begin") begin(state, end).catch(fail);
    else if (command.do === "answer") answer(state, end, command).catch(fail);
    else if (command.do === "close") state.sessions.get(command.session)?.end("deleted");
    else {
      const candidate = { candidate: command.candidate, sdpMLineIndex: 0 };
      const { connection } = state.sessions.get(command.session) ?? {};
      connection?.addIceCandidate(candidate).catch(() => {});
    }
  }
}

function open(state: State, end: End, number: number): Session {
  const session = new Session(number, state.now, () => {
    state.changed = true;
    if (session.isConnected) end.connected(session);
  });
  state.sessions.set(number, session);
  return session;
}

/** The trial begins: a page that makes the offer makes it. */
async function begin(state: State, end: End): Promise<void> {
  if (state.job.offers_to === null) return;
  const session = open(state, end, OWN);
  end.offer(session);
  await session.offer(state.job.offers_to);
}

async function answer(
  state: State,
  end: End,
  { session: number, offer }: { session: number; offer: string },
): Promise<void> {
  const session = open(state, end, number);
  let body: string;
  let path = "/answer/";
  try {
    end.expect(session);
    body = await session.answer(offer, () => end.answer(session));
  } catch (error) {
    session.end("unanswered");
    state.sessions.delete(number);
    [path, body] = ["/refusal/", String(error)];
  }
  await fetch(path + number, { method: "POST", body });
}

async function look(state: State): Promise<void> {
  for (const session of state.sessions.values()) {
    const entry = session.isConnected ? await statistics(session, state.now) : null;
    if (entry !== null) push(state, state.statistics, entry);
  }
}

function push<T>(state: State, list: T[], entry: T): void {
  if (list.length < ENTRIES_MAX) list.push(entry);
  else state.left_out += 1;
}

function send(state: State): void {
  const { missed, failure, left_out } = state;
  const sessions = state.changed ? [...state.sessions.values()].map((it) => it.report()) : [];
  state.changed = false;
  const statistics = state.statistics.splice(0);
  const shown = state.shown.splice(0);
  const report: Report = { sessions, statistics, shown, missed, failure, left_out };
  // The endpoint ends the browser, not the other way round: a report that fails is only lost.
  fetch("/report", { method: "POST", body: JSON.stringify(report) }).catch(() => {});
}

fetch("/job.json")
  .then((response) => response.json() as Promise<Job>)
  .then(main);
