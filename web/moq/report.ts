// What the page and the endpoint send to each other; `crates/players/src/moq/report.rs` reads it strictly. Times are
// milliseconds since the trial's epoch, unless they say otherwise.
import type { Footage } from "../webrtc/report";

/** What the page is to do. */
export interface Job {
  readonly role: "publisher" | "viewer";
  /** Where the relay is: `https://HOST:PORT/`, with the token. */
  readonly url: string;
  /** SHA-256 of its certificate, byte by byte. */
  readonly certificate: readonly number[];
  readonly broadcast: string;
  /** What the browser is asked to optimise its sending rate for. */
  readonly congestion: "default" | "throughput" | "low-latency";
  /** The protocol that is offered, such as `moqt-18`. */
  readonly protocol: string;
  /** Of a publisher. */
  readonly camera: CameraJob | null;
  /** The trial's epoch in milliseconds since 1970. */
  readonly epoch_unix_ms: number;
}

export interface CameraJob {
  readonly footage: Footage;
  /** Its codec (RFC 6381), and the catalog that has it. */
  readonly codec: string;
  readonly catalog: string;
  readonly rate_bps: number;
  readonly key_every_ms: number;
  /** What becomes a stream. */
  readonly streams: "frame" | "gop";
}

/** What the endpoint wants next. */
export interface Command {
  readonly do: "begin";
}

export interface SessionReport {
  readonly opened_ms: number;
  /** When QUIC and HTTP/3 were ready. */
  readonly connected_ms: number | null;
  readonly set_up_ms: number | null;
  readonly ended_ms: number | null;
  readonly ended: string | null;
  /** The protocol that was agreed on. */
  readonly protocol: string | null;
  /** What the browser says of its congestion control; null: nothing. */
  readonly congestion: string | null;
  /** Streams that the page has opened so far. */
  readonly streams: number;
}

/** Counters of the connection since its beginning, from getStats; null: Chromium does not know it (yet). */
export interface StatisticsReport {
  readonly at_ms: number;
  readonly sent_packets: number | null;
  readonly sent_bytes: number | null;
  readonly received_bytes: number | null;
  readonly lost_packets: number | null;
  readonly srtt_ms: number | null;
  readonly min_rtt_ms: number | null;
  /** The rate at which it thinks that it can send. */
  readonly send_bps: number | null;
  /** Bytes that streams were given, and of these those that they have taken. */
  readonly given_bytes: number;
  readonly taken_bytes: number;
  /** Frames that were encoded or decoded so far, of these the key frames, and the time that it took. */
  readonly coded: number;
  readonly key_frames: number;
  readonly coding_ms: number;
  /** Of a viewer: frames that its decoder gave up. */
  readonly given_up: number | null;
}

/** A frame that was shown. */
export interface ShownReport {
  /** The time in its object, in microseconds. */
  readonly time_us: number;
  readonly shown_ms: number;
  /** The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read. */
  readonly frame: number | null;
  readonly captured_unix_ms: number | null;
}

export interface Report {
  readonly session: SessionReport | null;
  readonly statistics: readonly StatisticsReport[];
  readonly shown: readonly ShownReport[];
  /** Frames that the camera or the encoder missed because the page was late, so far. */
  readonly missed: number;
  /** Frames that were encoded or decoded. */
  readonly coded: number;
  /** Objects that could not be read. */
  readonly malformed: number;
  /** How often the decoder of a viewer fell behind, and the frames that were given up then, so far. */
  readonly behind: number;
  readonly given_up: number;
  /** Why it does not work; null if it does. */
  readonly failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  readonly left_out: number;
}
