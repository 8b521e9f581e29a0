// Generated from crates/players/src/browser/: do not edit.
// make generate

/** What the page and the endpoint send to each other. Times are of the page's clock. */
export interface Messages {
  job: Job;
  report: Report;
}

/** What the page is to play. */
export interface Job {
  player: Library;
  manifest: string;
  /** Most media to hold ahead of the playhead. */
  buffer_s: number;
  /** Live: how far behind the live edge to play; null: as the library does. */
  target_latency_s: number | null;
  /** dash.js: which of its rules choose the rung. */
  rules: DashRules;
  /** dash.js: how it measures the throughput of responses in chunks. */
  estimate: DashEstimate;
  /** dash.js: `lolp` is a rule of LoL+ for its speed; with others it has its own. */
  catch_up: CatchUp;
  /** By how much the speed may change; null: as the library does. */
  speed_change: number | null;
  /** How far behind its target it may fall before it seeks; null: as the library does. */
  max_drift_s: number | null;
  /** How it reports its playback to the server; null: it does not. */
  cmcd: CmcdJob | null;
}

export type Library = "dashjs" | "hlsjs" | "shaka";

/** Rules of dash.js for the rung. */
export type DashRules = "dynamic" | "throughput" | "bola" | "l2a" | "lolp";

/** How dash.js measures the throughput of a response that comes in chunks. */
export type DashEstimate = "moof" | "data" | "aast";

/** The rule by which a live player chooses its speed. */
export type CatchUp = "steps" | "sigmoid" | "lolp";

/** Common Media Client Data (CTA-5004). */
export interface CmcdJob {
  /** 1 or 2. */
  version: number;
  /** In headers of requests; false: in their query. */
  headers: boolean;
}

export interface Report {
  /** The page's clock when the report was sent. */
  sent_ms: number;
  states: StateReport[];
  requests: RequestReport[];
  /** Why playback broke off; null if it did not. */
  failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  left_out: number;
}

/** The player at one moment of the page's clock. */
export interface StateReport {
  at_ms: number;
  state: Shown;
  position_s: number;
  buffer_s: number;
  speed: number;
  /** Frames dropped so far. */
  dropped: number;
  /** Bit rate of the video rung under the playhead, as the manifest has it; null: the library does not tell it, or not yet. */
  rung_bps: number | null;
  /** Path of the video segment under the playhead; null as above. */
  shown: string | null;
  /** When the frame under the playhead was captured, in milliseconds since 1970; null as above. */
  captured_ms: number | null;
  /** Live: the latency that the library aims at; null as above. */
  target_latency_s: number | null;
  /** Throughput as the library estimates it; null as above. */
  estimate_bps: number | null;
}

export type Shown = "starting" | "playing" | "stalled" | "ended";

/** A request that is over. */
export interface RequestReport {
  target: string;
  sent_ms: number;
  first_byte_ms: number | null;
  done_ms: number;
  status: number | null;
  body_bytes: number;
}
