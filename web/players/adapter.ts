// dash.js, hls.js and Shaka Player, as far as we use them. They are loaded by the page as they were published.

import type { Job, StateReport } from "../src/generated/players";
import { dash } from "./dash";
import { known } from "./known";
import { shakaPlayer } from "./shaka";

/** What the library knows; null: it does not tell it, or not yet. */
export type Told = Pick<
  StateReport,
  "rung_bps" | "shown" | "captured_ms" | "target_latency_s" | "estimate_bps"
>;

export interface Adapter {
  look(): Told;
}

/** Starts the library; `fail` receives the reason if it gives up. */
export function adapt(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  return { dashjs: dash, hlsjs: hls, shaka: shakaPlayer }[job.player](job, video, fail);
}

interface HlsPlayer {
  loadSource(manifest: string): void;
  attachMedia(video: HTMLVideoElement): void;
  on(event: string, listener: (event: string, data: never) => void): void;
  readonly playingDate: Date | null;
  readonly targetLatency: number | null;
  readonly bandwidthEstimate: number;
  readonly loadLevel: number;
  readonly levels: readonly { readonly bitrate: number }[];
}
interface HlsLibrary {
  new (configuration: object): HlsPlayer;
  readonly version: string;
}
declare const Hls: HlsLibrary;

function hls(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  const { target_latency_s: target, max_drift_s: drift, speed_change: change, cmcd } = job;
  const player = new Hls({
    maxBufferLength: job.buffer_s,
    maxMaxBufferLength: job.buffer_s,
    ...(target !== null && { liveSyncDuration: target }),
    ...(target !== null && drift !== null && { liveMaxLatencyDuration: target + drift }),
    ...(change !== null && { maxLiveSyncPlaybackRate: 1 + change }),
    ...(cmcd && { cmcd: { version: cmcd.version, useHeaders: cmcd.headers } }),
  });
  let shown: string | null = null;
  player.on("hlsFragChanged", (_: string, { frag }: { frag: { type: string; url: string } }) => {
    if (frag.type === "main") shown = new URL(frag.url).pathname;
  });
  player.on("hlsError", (_: string, data: { fatal: boolean; type: string; details: string }) => {
    if (data.fatal) fail(`${data.type}: ${data.details}`);
  });
  // Version 1.0 does not know which of its parts is shown: the rung that it loads is at most the buffer ahead.
  const old = Hls.version.startsWith("1.0.");
  const loading = (): number | null => player.levels[player.loadLevel]?.bitrate ?? null;
  player.loadSource(job.manifest);
  player.attachMedia(video);
  video.autoplay = true;
  return {
    look: () => ({
      rung_bps: old ? loading() : null,
      shown,
      captured_ms: known(() => player.playingDate?.getTime() ?? Number.NaN),
      target_latency_s: known(() => player.targetLatency ?? Number.NaN),
      estimate_bps: known(() => player.bandwidthEstimate),
    }),
  };
}
