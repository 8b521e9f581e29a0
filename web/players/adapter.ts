// dash.js and hls.js, as far as we use them. They are loaded by the page as they were published.
import type { Job, Told } from "./report";

export interface Adapter {
  look(): Told;
}

/** Starts the library; `fail` receives the reason if it gives up. */
export function adapt(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  return job.player === "dashjs" ? dash(job, video, fail) : hls(job, video, fail);
}

interface DashPlayer {
  initialize(video: HTMLVideoElement, manifest: string, autoplay: boolean): void;
  updateSettings(settings: object): void;
  on(event: string, listener: (event: never) => void): void;
  timeAsUTC(): number;
  getAverageThroughput(kind: "video"): number;
}
interface DashLibrary {
  MediaPlayer(): { create(): DashPlayer };
}
declare const dashjs: DashLibrary;

function dash(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  const player = dashjs.MediaPlayer().create();
  const delay = job.target_latency_s === null ? {} : { delay: { liveDelay: job.target_latency_s } };
  const buffer = {
    bufferTimeDefault: job.buffer_s,
    bufferTimeAtTopQuality: job.buffer_s,
    bufferTimeAtTopQualityLongForm: job.buffer_s,
  };
  player.updateSettings({ streaming: { buffer, ...delay } });
  let rung_bps: number | null = null;
  type Rendered = { mediaType: string; newRepresentation?: { bandwidth: number } };
  player.on("qualityChangeRendered", ({ mediaType, newRepresentation }: Rendered) => {
    if (mediaType === "video" && newRepresentation) rung_bps = newRepresentation.bandwidth;
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
      estimate_bps: known(() => player.getAverageThroughput("video") * 1000),
    }),
  };
}

interface HlsPlayer {
  loadSource(manifest: string): void;
  attachMedia(video: HTMLVideoElement): void;
  on(event: string, listener: (event: string, data: never) => void): void;
  readonly playingDate: Date | null;
  readonly bandwidthEstimate: number;
}
interface HlsLibrary {
  new (configuration: object): HlsPlayer;
}
declare const Hls: HlsLibrary;

function hls(job: Job, video: HTMLVideoElement, fail: (reason: string) => void): Adapter {
  const latency = job.target_latency_s === null ? {} : { liveSyncDuration: job.target_latency_s };
  const player = new Hls({
    maxBufferLength: job.buffer_s,
    maxMaxBufferLength: job.buffer_s,
    ...latency,
  });
  let shown: string | null = null;
  player.on("hlsFragChanged", (_: string, { frag }: { frag: { type: string; url: string } }) => {
    if (frag.type === "main") shown = new URL(frag.url).pathname;
  });
  player.on("hlsError", (_: string, data: { fatal: boolean; type: string; details: string }) => {
    if (data.fatal) fail(`${data.type}: ${data.details}`);
  });
  player.loadSource(job.manifest);
  player.attachMedia(video);
  video.autoplay = true;
  return {
    look: () => ({
      rung_bps: null,
      shown,
      captured_ms: known(() => player.playingDate?.getTime() ?? Number.NaN),
      estimate_bps: known(() => player.bandwidthEstimate),
    }),
  };
}

/** A finite number that is not negative, or null: libraries throw, or give NaN, before they know. */
function known(ask: () => number): number | null {
  try {
    const value = ask();
    return Number.isFinite(value) && value >= 0 ? value : null;
  } catch {
    return null;
  }
}
