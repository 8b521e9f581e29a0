// What the page and the endpoint send to each other; `crates/players/src/webrtc/report.rs` reads it strictly. Times are
// milliseconds since the trial's epoch, unless they say otherwise.

export type Codec = "h264" | "vp8" | "vp9" | "av1";

/** What the page is to do. */
export interface Job {
  readonly role: "publisher" | "viewer";
  /** The codec of the video, without any other as a fallback. */
  readonly codec: Codec;
  /** Where the page makes its offer; null: it answers the offers that the endpoint hands over. */
  readonly offers_to: Resource | null;
  /** Most bits per second that a publisher sends. */
  readonly max_bps: number;
  /** From one key frame of a publisher to the next at most; null: the browser decides. */
  readonly key_every_ms: number | null;
  /** What a publisher's camera sees. */
  readonly footage: Footage | null;
  /** The trial's epoch in milliseconds since 1970. */
  readonly epoch_unix_ms: number;
}

/** A resource of WHIP or WHEP. */
export interface Resource {
  readonly url: string;
  readonly token: string | null;
}

/** Frames in 8 bit 4:2:0 that repeat: `/footage/N` has those from N times `per_part` on. */
export interface Footage {
  readonly width: number;
  readonly height: number;
  readonly fps: number;
  readonly frames: number;
  readonly per_part: number;
}

/** What the endpoint wants next. */
export type Command =
  | { readonly do: "begin" }
  | { readonly do: "answer"; readonly session: number; readonly offer: string }
  | { readonly do: "candidate"; readonly session: number; readonly candidate: string }
  | { readonly do: "close"; readonly session: number };

export interface SessionReport {
  readonly session: number;
  readonly opened_ms: number;
  readonly answered_ms: number | null;
  readonly connected_ms: number | null;
  readonly ended_ms: number | null;
  readonly ended: "closed" | "broken" | "unanswered" | "deleted" | null;
  /** Where it can be deleted, if this end made the offer. */
  readonly location: string | null;
  /** This end's candidates over UDP, as `ADDRESS:PORT`. */
  readonly candidates: readonly string[];
  readonly agreed: Agreed | null;
}

/** What both ends agreed on, as their session descriptions have it. */
export interface Agreed {
  readonly codec: string;
  readonly payload_types: string;
  readonly feedback: string;
  readonly extensions: string;
}

/** Counters of a connection since its beginning, from getStats; null: Chromium does not know it (yet). */
export interface StatisticsReport {
  readonly session: number;
  readonly at_ms: number;
  readonly local: string | null;
  readonly remote: string | null;
  /** Packets and bytes of the pair of candidates, without headers of UDP and IP. */
  readonly sent_packets: number;
  readonly sent_bytes: number;
  readonly received_packets: number;
  readonly received_bytes: number;
  readonly rtt_ms: number | null;
  readonly estimate_bps: number | null;
  readonly target_bps: number | null;
  readonly loss_ratio: number | null;
  readonly nacks: number;
  readonly retransmissions: number;
  readonly plis: number;
  readonly firs: number;
  /** Packets of video so far. */
  readonly video_packets: number;
  readonly width: number | null;
  readonly height: number | null;
  /** Time that frames took to be encoded or decoded so far, and how many. */
  readonly coding_ms: number;
  readonly coded: number;
  readonly key_frames: number | null;
  /** Quantiser parameters of these frames so far, added up. */
  readonly qp_sum: number | null;
  /** Of a receiver: frames that came and were not shown, and freezes, so far. */
  readonly dropped: number | null;
  readonly freezes: number | null;
  readonly freezes_ms: number | null;
  /** Frames that left the jitter buffer so far; the time that they were in it and were to be in it, added up. */
  readonly jitter_buffer_frames: number | null;
  readonly jitter_buffer_ms: number | null;
  readonly jitter_buffer_target_ms: number | null;
  /** What limits the encoder of a sender now. */
  readonly limitation: string | null;
  /** The codec that is used and its parameters; null before it is known. */
  readonly codec: string | null;
}

/** A frame that was shown. */
export interface ShownReport {
  readonly rtp: number;
  readonly shown_ms: number;
  /** When its last packet came. */
  readonly received_ms: number | null;
  /** The number in its stamp, and its capture time in milliseconds since 1970; null: it cannot be read. */
  readonly frame: number | null;
  readonly captured_unix_ms: number | null;
  /** Frames that were presented so far, also those that the page did not see. */
  readonly presented: number;
}

export interface Report {
  readonly sessions: readonly SessionReport[];
  readonly statistics: readonly StatisticsReport[];
  readonly shown: readonly ShownReport[];
  /** Frames that the camera missed because the page was late, so far. */
  readonly missed: number;
  /** Why it does not work; null if it does. */
  readonly failure: string | null;
  /** Entries that were left out of reports because there were too many. */
  readonly left_out: number;
}
