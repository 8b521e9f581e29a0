// dash.js, of version 5 or 4: the names of many settings differ.

import type { Job } from "../src/generated/players";
import type { Adapter } from "./adapter";
import { known } from "./known";

interface Player {
  initialize(video: HTMLVideoElement, manifest: string, autoplay: boolean): void;
  updateSettings(settings: object): void;
  on(event: string, listener: (event: never) => void): void;
  timeAsUTC(): number;
  getTargetLiveDelay(): number;
  getAverageThroughput(kind: "video"): number;
  /** Version 4 only. */
  getBitrateInfoListFor?(kind: "video"): readonly { readonly bitrate: number }[];
}
interface Library {
  MediaPlayer(): { create(): Player };
}
declare const dashjs: Library;

/** Starts the library; `fail` receives the reason if it gives up. */
export function dash(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  const player = dashjs.MediaPlayer().create();
  const rungs = player.getBitrateInfoListFor?.bind(player);
  player.updateSettings({ streaming: rungs ? settings4(job) : settings5(job) });
  let rung_bps: number | null = null;
  type Rendered = {
    mediaType: string;
    newRepresentation?: { bandwidth: number };
    newQuality?: number;
  };
  player.on("qualityChangeRendered", ({ mediaType, newRepresentation, newQuality }: Rendered) => {
    if (mediaType !== "video") return;
    const shown = newRepresentation?.bandwidth ?? rungs?.("video")[newQuality ?? -1]?.bitrate;
    rung_bps = shown ?? rung_bps;
  });
  player.on("error", ({ error }: { error: { code?: number; message?: string } | string }) => {
    // A segment that could not be had is tried again; only the element's own error is the end.
    if (video.error) {
      fail(typeof error === "string" ? error : `${error.code ?? "?"}: ${error.message ?? "error"}`);
    }
  });
  player.initialize(video, job.manifest, true);
  return {
    look: () => ({
      rung_bps,
      shown: null,
      captured_ms: known(() => player.timeAsUTC() * 1000),
      target_latency_s: known(() => player.getTargetLiveDelay()),
      estimate_bps: known(() => player.getAverageThroughput("video") * 1000),
    }),
  };
}

/** What both versions call alike. */
function settings(job: Job): object {
  const target = job.target_latency_s;
  return target === null ? {} : { delay: { liveDelay: target } };
}

/** How it stays near its target. */
function catchUp(job: Job, playbackRate: object | number): object {
  return {
    ...(job.speed_change !== null && { playbackRate }),
    ...(job.max_drift_s !== null && { maxDrift: job.max_drift_s }),
    ...(job.catch_up === "lolp" && { mode: "liveCatchupModeLoLP" }),
  };
}

function settings5(job: Job): object {
  const buffer = {
    bufferTimeDefault: job.buffer_s,
    bufferTimeAtTopQuality: job.buffer_s,
    bufferTimeAtTopQualityLongForm: job.buffer_s,
  };
  const active = (...of: Job["rules"][]): object => ({ active: of.includes(job.rules) });
  // Version 5 keeps these three next to any rule. Version 4 runs L2A-LL and LoL+ alone, for which they are made.
  const others = active("dynamic", "throughput", "bola");
  const rules = {
    throughputRule: active("dynamic", "throughput"),
    bolaRule: active("dynamic", "bola"),
    insufficientBufferRule: others,
    switchHistoryRule: others,
    abandonRequestsRule: others,
    l2ARule: active("l2a"),
    loLPRule: active("lolp"),
  };
  const mode = { moof: "MoofParsing", data: "DownloadedData", aast: "Aast" }[job.estimate];
  const throughput = {
    lowLatencyDownloadTimeCalculationMode: `lowLatencyDownloadTimeCalculationMode${mode}`,
  };
  const change = job.speed_change ?? 0;
  const { cmcd } = job;
  const mode5 = cmcd?.headers ? "headers" : "query";
  return {
    ...settings(job),
    buffer,
    abr: { rules, throughput },
    liveCatchup: catchUp(job, { min: -change, max: change }),
    ...(cmcd && { cmcd: { enabled: true, version: cmcd.version, mode: mode5 } }),
  };
}

function settings4(job: Job): object {
  const buffer = {
    stableBufferTime: job.buffer_s,
    bufferTimeAtTopQuality: job.buffer_s,
    bufferTimeAtTopQualityLongForm: job.buffer_s,
  };
  const strategies = {
    dynamic: "abrDynamic",
    throughput: "abrThroughput",
    bola: "abrBola",
    l2a: "abrL2A",
    lolp: "abrLoLP",
  };
  const mode = { moof: "MoofParsing", data: "DownloadedData", aast: "AAST" }[job.estimate];
  const abr = {
    ABRStrategy: strategies[job.rules],
    fetchThroughputCalculationMode: `abrFetchThroughputCalculation${mode}`,
  };
  const { cmcd } = job;
  return {
    ...settings(job),
    buffer,
    abr,
    liveCatchup: catchUp(job, job.speed_change ?? 0),
    // Version 1 is all it knows.
    ...(cmcd && { cmcd: { enabled: true, mode: cmcd.headers ? "header" : "query" } }),
  };
}
