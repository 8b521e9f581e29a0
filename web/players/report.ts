// What the page and the endpoint send to each other; `crates/players/src/browser/report.rs` reads
// it strictly.

/** What the page is to play. */
export interface Job {
  readonly player: "dashjs" | "hlsjs";
  readonly manifest: string;
  /** Most media to hold ahead of the playhead. */
  readonly buffer_s: number;
  /** Live: how far behind the live edge to play; null: as the library does. */
  readonly target_latency_s: number | null;
  /** dash.js: which of its rules choose the rung. */
  readonly rules: "dynamic" | "throughput" | "bola" | "l2a" | "lolp";
  /** dash.js: how it measures the throughput of responses in chunks. */
  readonly estimate: "moof" | "data" | "aast";
  /** dash.js: `lolp` is a rule of LoL+ for its speed. */
  readonly catch_up: "steps" | "lolp";
  /** By how much the speed may change; null: as the library does. */
  readonly speed_change: number | null;
  /** How far behind its target it may fall before it seeks; null: as the library does. */
  readonly max_drift_s: number | null;
  /** How it reports its playback to the server; null: it does not. */
  readonly cmcd: { readonly version: 1 | 2; readonly headers: boolean } | null;
}

export type State = "starting" | "playing" | "stalled" | "ended";

/** What the library knows; null: it does not report it, or not yet. */
export interface Told {
  /** Bit rate of the video rung under the playhead, as the manifest has it. */
  readonly rung_bps: number | null;
  /** Path of the video segment under the playhead. */
  readonly shown: string | null;
  /** When the frame under the playhead was captured, in milliseconds since 1970. */
  readonly captured_ms: number | null;
  /** Throughput as the library estimates it. */
  readonly estimate_bps: number | null;
}

/** The player at one moment of the page's clock. */
export interface StateReport extends Told {
  readonly at_ms: number;
  readonly state: State;
  readonly position_s: number;
  readonly buffer_s: number;
  readonly speed: number;
  /** Frames dropped so far. */
  readonly dropped: number;
}

/** A request that is over. */
export interface RequestReport {
  readonly target: string;
  readonly sent_ms: number;
  readonly first_byte_ms: number | null;
  readonly done_ms: number;
  readonly status: number | null;
  readonly body_bytes: number;
}

export interface Report {
  /** The page's clock when the report was sent. */
  readonly sent_ms: number;
  readonly states: readonly StateReport[];
  readonly requests: readonly RequestReport[];
  /** Why playback broke off; null if it did not. */
  readonly failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  readonly left_out: number;
}
