// Shaka Player, which plays both DASH and HLS.

import type { Job } from "../src/generated/players";
import type { Adapter } from "./adapter";
import { known } from "./known";

interface Failure {
  readonly severity: number;
  readonly category: number;
  readonly code: number;
}
interface Track {
  readonly active: boolean;
  readonly bandwidth: number;
}
interface Player {
  attach(video: HTMLVideoElement): Promise<void>;
  load(manifest: string): Promise<void>;
  configure(configuration: object): boolean;
  addEventListener(event: string, listener: (event: never) => void): void;
  getVariantTracks(): readonly Track[];
  getPlayheadTimeAsDate(): Date | null;
  getStats(): { readonly estimatedBandwidth: number };
}
interface Library {
  readonly Player: new () => Player;
  readonly polyfill: { installAll(): void };
}
declare const shaka: Library;

/** An error that ends playback, as Shaka calls it. */
const CRITICAL = 2;

/** Starts the library; `fail` receives the reason if it gives up. */
export function shakaPlayer(
  job: Job,
  video: HTMLVideoElement,
  fail: (reason: string) => void,
): Adapter {
  shaka.polyfill.installAll();
  const player = new shaka.Player();
  const failed = (error: Failure): void => {
    if (error.severity === CRITICAL) fail(`category ${error.category}, code ${error.code}`);
  };
  let rung_bps: number | null = null;
  type Changed = { quality: { contentType: string; bandwidth: number } };
  // It comes when what is shown changes, not what is fetched; but only for DASH, which has a bit rate for the video alone.
  player.addEventListener("mediaqualitychanged", ({ quality }: Changed) => {
    if (quality.contentType === "video") rung_bps = quality.bandwidth || rung_bps;
  });
  const loading = (): number | null =>
    player.getVariantTracks().find(({ active }) => active)?.bandwidth ?? null;
  player.addEventListener("error", ({ detail }: { detail: Failure }) => failed(detail));
  player.configure(configuration(job));
  video.autoplay = true;
  player
    .attach(video)
    .then(() => player.load(job.manifest))
    .catch(failed);
  return {
    look: () => ({
      rung_bps: rung_bps ?? loading(),
      shown: null,
      captured_ms: known(() => player.getPlayheadTimeAsDate()?.getTime() ?? Number.NaN),
      target_latency_s: job.target_latency_s,
      estimate_bps: known(() => player.getStats().estimatedBandwidth),
    }),
  };
}

function configuration(job: Job): object {
  const { target_latency_s: target, speed_change: change, cmcd } = job;
  const liveSync = {
    enabled: target !== null,
    ...(target !== null && { targetLatency: target }),
    ...(change !== null && { maxPlaybackRate: 1 + change, minPlaybackRate: 1 - change }),
  };
  return {
    streaming: {
      bufferingGoal: job.buffer_s,
      lowLatencyMode: target !== null,
      observeQualityChanges: true,
      liveSync,
    },
    ...(cmcd && { cmcd: { enabled: true, version: cmcd.version, useHeaders: cmcd.headers } }),
  };
}
