// Generated from crates/webrtc/src/chromium/: do not edit.
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
  role: PageRole;
  /** The codec of the video, without any other as a fallback. */
  codec: "h264" | "vp8" | "vp9" | "av1";
  /** Where the page makes its offer; null: it answers the offers that the endpoint hands over. */
  offers_to: Resource | null;
  /** Most bits per second that a publisher sends. */
  max_bps: number;
  /** From one key frame of a publisher to the next at most; null: the browser decides. */
  key_every_ms: number | null;
  /** What a publisher's camera sees. */
  footage: Footage | null;
  /** When it captures nothing, in order. */
  pauses: Pause[];
  /** The trial's epoch in milliseconds since 1970. */
  epoch_unix_ms: number;
}

export type PageRole = "publisher" | "viewer";

/** A resource of WHIP or WHEP. */
export interface Resource {
  url: string;
  token: string | null;
}

/** Frames in 8 bit 4:2:0 that repeat: `/footage/N` has those from N times `per_part` on. */
export interface Footage {
  width: number;
  height: number;
  fps: number;
  frames: number;
  per_part: number;
}

/** A time in which the camera captures nothing, in milliseconds since the trial's epoch. */
export interface Pause {
  from_ms: number;
  to_ms: number;
}

/** What the endpoint wants next. */
export type Command = { do: "begin" } | { do: "answer"; session: number; offer: string } | { do: "candidate"; session: number; candidate: string } | { do: "close"; session: number };

export interface Report {
  sessions: SessionReport[];
  statistics: StatisticsReport[];
  shown: ShownReport[];
  /** Frames that the camera missed because the page was late, so far. */
  missed: number;
  /** Why it does not work; null if it does. */
  failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  left_out: number;
}

export interface SessionReport {
  session: number;
  opened_ms: Ms;
  answered_ms: Ms | null;
  connected_ms: Ms | null;
  ended_ms: Ms | null;
  ended: Ended | null;
  /** Where it can be deleted, if this end made the offer. */
  location: string | null;
  /** This end's candidates over UDP, as `ADDRESS:PORT`. */
  candidates: string[];
  agreed: Agreed | null;
}

/** A time in milliseconds since the trial's epoch; what was before it counts as the epoch. */
export type Ms = number;

export type Ended = "closed" | "broken" | "unanswered" | "deleted";

/** What both ends agreed on, as their session descriptions have it. */
export interface Agreed {
  /** The codec of the video, without any other as a fallback. */
  codec: string;
  payload_types: string;
  feedback: string;
  extensions: string;
}

/** Counters of a connection since its beginning, from getStats; null: Chromium does not know it (yet). */
export interface StatisticsReport {
  session: number;
  at_ms: Ms;
  local: string | null;
  remote: string | null;
  /** Packets and bytes of the pair of candidates, without headers of UDP and IP. */
  sent_packets: number;
  sent_bytes: number;
  received_packets: number;
  received_bytes: number;
  rtt_ms: Ms | null;
  estimate_bps: number | null;
  target_bps: number | null;
  loss_ratio: number | null;
  nacks: number;
  retransmissions: number;
  plis: number;
  firs: number;
  /** Packets of video so far. */
  video_packets: number;
  width: number | null;
  height: number | null;
  /** Time that frames took to be encoded or decoded so far, and how many. */
  coding_ms: Ms;
  coded: number;
  key_frames: number | null;
  /** Quantiser parameters of these frames so far, added up. */
  qp_sum: number | null;
  /** Of a receiver: frames that came and were not shown, and freezes, so far. */
  dropped: number | null;
  freezes: number | null;
  freezes_ms: Ms | null;
  /** Frames that left the jitter buffer so far; the time that they were in it and were to be in it, added up. */
  jitter_buffer_frames: number | null;
  jitter_buffer_ms: Ms | null;
  jitter_buffer_target_ms: Ms | null;
  /** What limits the encoder of a sender now. */
  limitation: "none" | "cpu" | "bandwidth" | "other" | null;
  /** The codec of the video, without any other as a fallback. */
  codec: string | null;
}

/** A frame that was shown. */
export interface ShownReport {
  rtp: number;
  shown_ms: Ms;
  /** When its last packet came. */
  received_ms: Ms | null;
  /** The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read. */
  frame: number | null;
  captured_unix_ms: number | null;
  /** Frames that were presented so far, also those that the page did not see. */
  presented: number;
}
