// Generated from crates/moq/src/chromium/: do not edit.
// make generate

/**
 * What the page and the endpoint send to each other. Times are milliseconds since the trial's epoch, unless they say
 * otherwise.
 */
export interface Messages {
  job: Job;
  command: Command;
  report: Report;
}

/** What the page is to do. */
export interface Job {
  /** Where the relay is: `https://HOST:PORT/`, with the token. */
  url: string;
  /** SHA-256 of its certificate, byte by byte. */
  certificate: number[];
  broadcast: string;
  /** What the browser is asked to optimise its sending rate for. */
  congestion: BrowserCongestion;
  /** The protocol that is offered, such as `moqt-18`. */
  protocol: string;
  /** Of a publisher; null: it is a viewer. */
  camera: CameraJob | null;
  /** The trial's epoch in milliseconds since 1970. */
  epoch_unix_ms: number;
}

/**
 * What the congestion control of WebTransport in a browser is asked to optimise for (W3C, WebTransport,
 * `WebTransportCongestionControl`). The browser decides what it does with that.
 */
export type BrowserCongestion = "default" | "throughput" | "low-latency";

/** What a publisher sends. */
export interface CameraJob {
  footage: Footage;
  /** Its codec (RFC 6381). */
  codec: string;
  /** The catalog that has it. */
  catalog: string;
  rate_bps: number;
  key_every_ms: number;
  streams: Streams;
  /** When it captures nothing, in order. */
  pauses: Pause[];
}

/** Frames in 8 bit 4:2:0 that repeat: `/footage/N` has those from N times `per_part` on. */
export interface Footage {
  width: number;
  height: number;
  fps: number;
  frames: number;
  per_part: number;
}

/** What becomes a stream. */
export type Streams = "frame" | "gop";

/** A time in which the camera captures nothing, in milliseconds since the trial's epoch. */
export interface Pause {
  from_ms: number;
  to_ms: number;
}

/** What the endpoint wants next. */
export type Command = { do: "begin" };

export interface Report {
  session: SessionReport | null;
  statistics: StatisticsReport[];
  shown: ShownReport[];
  /** Frames that the camera or the encoder missed because the page was late, so far. */
  missed: number;
  /** Frames that were encoded or decoded so far, of these the key frames, and the time that it took. */
  coded: number;
  /** Objects that could not be read. */
  malformed: number;
  /** How often the decoder of a viewer fell behind, and the frames that were given up then, so far. */
  behind: number;
  /** Of a viewer: frames that its decoder gave up. */
  given_up: number;
  /** Why it does not work; null if it does. */
  failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  left_out: number;
}

export interface SessionReport {
  opened_ms: Ms;
  /** When QUIC and HTTP/3 were ready. */
  connected_ms: Ms | null;
  set_up_ms: Ms | null;
  ended_ms: Ms | null;
  ended: string | null;
  /** The protocol that is offered, such as `moqt-18`. */
  protocol: string | null;
  /** What the browser is asked to optimise its sending rate for. */
  congestion: string | null;
  /** What becomes a stream. */
  streams: number;
}

/** A time in milliseconds since the trial's epoch; what was before it counts as the epoch. */
export type Ms = number;

/** Counters of the connection since its beginning, from getStats; null: Chromium does not know it (yet). */
export interface StatisticsReport {
  at_ms: Ms;
  sent_packets: number | null;
  sent_bytes: number | null;
  received_bytes: number | null;
  lost_packets: number | null;
  srtt_ms: Ms | null;
  min_rtt_ms: Ms | null;
  /** The rate at which it thinks that it can send. */
  send_bps: number | null;
  /** Bytes that streams were given, and of these those that they have taken. */
  given_bytes: number;
  taken_bytes: number;
  /** Frames that were encoded or decoded so far, of these the key frames, and the time that it took. */
  coded: number;
  key_frames: number;
  coding_ms: Ms;
  /** Of a viewer: frames that its decoder gave up. */
  given_up: number | null;
}

/** A frame that was shown. */
export interface ShownReport {
  /** The time in its object, in microseconds. */
  time_us: number;
  shown_ms: Ms;
  /** The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read. */
  frame: number | null;
  captured_unix_ms: number | null;
}
