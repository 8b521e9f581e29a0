// The page that plays with a library which is not ours, and reports what it does. The endpoint serves it and the
// library, in the same host.

import type { Job, Report, RequestReport, Shown, StateReport } from "../src/generated/players";
import { type Adapter, adapt } from "./adapter";
import { follow } from "./shown";

/** How often the state is looked at, and how often reports are sent, in milliseconds. */
const LOOK_EVERY_MS = 100;
const SEND_EVERY_MS = 200;
/** Limit on the entries of one report; the rest are dropped, and their number shows it. */
const ENTRIES_MAX = 500;

function main(job: Job): void {
  const video = document.createElement("video");
  video.muted = true;
  document.body.append(video);
  const states: StateReport[] = [];
  const requests: RequestReport[] = [];
  let failure: string | null = null;
  let dropped = 0;
  const fail = (reason: string): void => {
    failure ??= reason;
  };
  const push = <T>(list: T[], entry: T): void => {
    if (list.length < ENTRIES_MAX) list.push(entry);
    else dropped += 1;
  };

  const state = follow(video);
  watchRequests(job, (request) => push(requests, request));
  const adapter = adapt(job, video, fail);
  const look = (): void => push(states, view(video, state(), adapter));
  for (const event of ["playing", "waiting", "ratechange", "ended"])
    video.addEventListener(event, look);
  setInterval(look, LOOK_EVERY_MS);

  setInterval(() => {
    const report: Report = {
      sent_ms: performance.now(),
      states: states.splice(0),
      requests: requests.splice(0),
      failure,
      left_out: dropped,
    };
    // The endpoint ends the browser, not the other way round: a report that fails is only lost.
    fetch("/report", { method: "POST", body: JSON.stringify(report) }).catch(() => {});
  }, SEND_EVERY_MS);
}

function view(video: HTMLVideoElement, state: Shown, adapter: Adapter): StateReport {
  const told = adapter.look();
  return {
    at_ms: performance.now(),
    state,
    position_s: video.currentTime,
    buffer_s: ahead(video),
    speed: state === "playing" ? video.playbackRate : 0,
    dropped: video.getVideoPlaybackQuality().droppedVideoFrames,
    ...told,
  };
}

/** Media that is buffered without a hole from the playhead on, in seconds. */
function ahead(video: HTMLVideoElement): number {
  const { buffered, currentTime } = video;
  for (let i = 0; i < buffered.length; i++) {
    if (buffered.start(i) <= currentTime + 0.1 && currentTime < buffered.end(i)) {
      return buffered.end(i) - currentTime;
    }
  }
  return 0;
}

/** Reports each request to the origin when it is over, as the browser timed it. */
function watchRequests(job: Job, found: (request: RequestReport) => void): void {
  const origin = new URL(job.manifest).origin;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as PerformanceResourceTiming[]) {
      const url = new URL(entry.name);
      if (url.origin !== origin) continue;
      found({
        target: url.pathname + url.search,
        // Zero stands for "not known": a request that failed has no more than these.
        sent_ms: entry.requestStart || entry.fetchStart,
        first_byte_ms: entry.responseStart || null,
        done_ms: entry.responseEnd,
        status: entry.responseStatus || null,
        body_bytes: entry.encodedBodySize,
      });
    }
  });
  observer.observe({ type: "resource", buffered: true });
}

fetch("/job.json")
  .then((response) => response.json() as Promise<Job>)
  .then(main);
