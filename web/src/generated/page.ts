// Generated from crates/report/src/page.rs: do not edit.
// make generate

/** Everything that `report.html` shows. */
export interface Page {
  /** One line on what was run. */
  title: string;
  /** The scenario's name. */
  scenario: string;
  /** The study it repeats, such as `S0`. */
  study: string | null;
  /** When the run began: UTC, RFC 3339. */
  started: string;
  /** The seed of the run, as text: it may exceed what a JavaScript number holds. */
  seed: string;
  /** Version of suiro that ran it. */
  suiro: string;
  /** The command line. */
  command: string[];
  /** The scenario's text. */
  text: string;
  /** The machine; the first, if trials ran on several. */
  machine: Machine;
  /** What made the trials' time virtual; null for the machine's own time. */
  virtual_time: VirtualTime | null;
  /** The machines that trials ran on; empty if they did not record it. */
  machines: PageMachine[];
  /** Versions of the programs taking part. */
  versions: Record<string, string>;
  /** The matrix. */
  axes: Axis[];
  /** What was measured, in the order of the table. */
  metrics: PageMetric[];
  /** The panels that figures are drawn in, in the order of the page. */
  panels: PagePanel[];
  /** The causes that occur in the trials. */
  causes: PageCause[];
  /** What was recorded over time, in the order of the figures. */
  series: PageSeries[];
  /** The combinations. */
  cells: PageCell[];
  /**
   * True if all cells asked the same of their links, as far as rate, delay and loss go: only then can a value of one be
   * called the best.
   */
  comparable: boolean;
  /** The trials, in the order of the plan. */
  trials: PageTrial[];
  /** The cells and trials of a page of very many, instead of `cells` and `trials`; null otherwise. */
  many: PageMany | null;
  /** Several trials side by side; null if `suiro compare` has not been asked for it. */
  comparison: PageComparison | null;
  /** Published claims, compared with measured values. */
  findings: Finding[];
  /** What the study published; null if the scenario repeats none. */
  published: PageStudy | null;
}

/** The machine a run was made on. */
export interface Machine {
  /** Its host name, which distinguishes the machines of a sweep; empty if it is not known. */
  name: string;
  /** Kernel release. */
  kernel: string;
  /** Distribution. */
  system: string;
  /** CPU model. */
  cpu: string;
  /** Logical cores. */
  cores: number;
  /** Memory in bytes. */
  memory_bytes: number;
  /** The kernel's clock source. */
  clock_source: string;
  /** `root`, or `user` (rootless, in a user namespace). */
  privilege: "root" | "user";
  /**
   * Kernel settings that affect the results, such as `net.ipv4.tcp_rmem`, and `nice`, the priority of the trial's
   * processes.
   */
  settings: Record<string, string>;
}

/** What made the time of a trial virtual: it advanced only when all processes of a guest were idle. */
export interface VirtualTime {
  /** Version of the guest's kernel. */
  kernel: string;
  /** SHA-256 of the guest's kernel, in hexadecimal. */
  kernel_sha256: string;
}

/** A machine that trials ran on. */
export interface PageMachine {
  /** What it is. */
  machine: Machine;
  /** How many trials ran on it. */
  trials: number;
}

/** One axis of the matrix. */
export interface Axis {
  /** The parameter it varies. */
  name: string;
  /** Its values' labels. */
  labels: string[];
}

/** One metric. */
export interface PageMetric {
  /** Its name in `summary.json`. */
  name: string;
  /** A short label. */
  label: string;
  /** Its unit: `bit/s`, `B`, `s`, `ms`, `µs`, `ratio`, `cores`, or empty for counts. */
  unit: string;
  /** Which direction is better. */
  better: Better;
  /** Significant digits worth showing. */
  digits: number;
  /** True for what a short table shows. */
  main: boolean;
  /** What it means. */
  doc: string;
}

/** Which direction of a metric is better. */
export type Better = "higher" | "lower" | "neither";

/** A panel: how the figures of its series are drawn. */
export interface PagePanel {
  /** Which one. */
  id: Panel;
  /** The heading. */
  title: string;
  /**
   * The one direction of its series, if all have the same one (the title names it); null
   * otherwise.
   */
  direction: "down" | "up" | null;
  /** Its height in pixels. */
  height_px: number;
  /** True if the times at which the viewer's video froze are shaded. */
  stalls: boolean;
  /** True if its vertical axis need not begin at zero. */
  floating: boolean;
  /** True if the figure of an up direction is left out where nothing happened in it. */
  quiet_up: boolean;
}

/** A figure of the stack that shares one time axis, in the order of a page. */
export type Panel = "throughput_down" | "throughput_stations" | "rivals" | "flows" | "estimate" | "picture_size" | "frame_rate" | "quantiser" | "coding" | "jitter_buffer" | "target" | "loss" | "rung" | "buffer" | "latency" | "mouth_to_ear" | "lip_sync" | "concealed" | "quality" | "layer_loss" | "layer_delay" | "window" | "waiting" | "pacing" | "rtt" | "queue" | "queue_delay" | "losses" | "collisions" | "capture_rate" | "capture_loss" | "lateness" | "margin" | "outputs" | "ring" | "storage" | "multicast" | "throughput_up";

/** A cause, as the legend of a page has it. */
export interface PageCause {
  /** The cause. */
  cause: "no_request" | "application" | "round_trip" | "handshake" | "manifest" | "send_buffer" | "congestion_window" | "receive_window" | "slow_reader" | "pacing" | "link_rate" | "rate_step" | "competing" | "bufferbloat" | "outage" | "policer" | "loss" | "head_of_line" | "corruption" | "reordering" | "delay" | "jitter" | "ack_path" | "timeout" | "oversized_rung" | "no_catch_up" | "underestimate" | "quality_change" | "encoder" | "encoder_choice" | "jitter_buffer" | "key_frame" | "cache" | "server_processor" | "client_processor" | "emulator" | "unknown";
  /** What the legend calls it. */
  label: string;
  /** What it means. */
  doc: string;
}

/** One kind of time series. */
export interface PageSeries {
  /** Its name, such as `tcp.cwnd_bytes`. */
  name: string;
  /** The figure it belongs to. */
  panel: Panel;
  /** A few words for the legend. */
  label: string;
  /**
   * Which of several players, links or hosts it belongs to, in words; null if there is one, or
   * all are drawn in one figure.
   */
  instance: string | null;
  /** The direction of a link; null if it has none. */
  direction: "down" | "up" | null;
  /** `bit/s`, `B`, `ms`, `s` or `packets`. */
  unit: string;
  /** How it is drawn. */
  style: Style;
  /** What it means. */
  doc: string;
}

/** How a series is drawn. */
export type Style = "line" | "step" | "context" | "bound" | "bar";

/** One combination of the matrix. */
export interface PageCell {
  /** Its values' labels, joined. */
  label: string;
  /**
   * What happened in its valid trials, in one sentence without a full stop; null if nothing is known, and on a page of
   * very many trials.
   */
  brief: string | null;
  /** Its value's label on each axis. */
  values: string[];
  /** Its trials: indices into `trials`. */
  trials: number[];
  /** One per metric, over valid trials; null where none measured it. */
  metrics: (PageSpread | null)[];
}

/** A metric over repetitions. */
export interface PageSpread {
  /** How many trials measured it. */
  n: number;
  /** Mean. */
  mean: number;
  /** Standard deviation; null for a single trial. */
  sd: number | null;
  /** Half the width of the 95 % confidence interval (Student's t); null for a single trial. */
  ci95: number | null;
}

/** One trial. */
export interface PageTrial {
  /** Its cell: an index into `cells`. */
  cell: number;
  /** Its repetition, from 1. */
  repetition: number;
  /** Its seed, as text. */
  seed: string;
  /** Its folder below the results folder. */
  folder: string;
  /** True if it has a page of its own there, `report.html`. */
  own_page: boolean;
  /** How far it got. */
  state: PageState;
  /** False if its figures must not be used. */
  valid: boolean;
  /** Why not. */
  invalid_because: string | null;
  /** The machine that it ran on: an index into `machines`; null if it did not record it. */
  machine: number | null;
  /** When it began. */
  started: string | null;
  /** How long it measured. */
  duration_s: number | null;
  /** For how long it warmed up, which its metrics leave out. */
  warm_up_s: number;
  /** One per metric. */
  metrics: (number | null)[];
  /** The links before the trial. */
  self_checks: SelfCheck[];
  /** The links during the trial. */
  links: LinkTotals[];
  /** The plain cables. */
  cables: Cable[];
  /** The endpoints. */
  endpoints: EndpointOutcome[];
  /** Its flows, as endpoints reported them. */
  flows: PageFlow[];
  /** What was made of the screens of its viewers. */
  screens: ScreenOutcome[];
  /** Warnings: what a reader of its figures should know and what does not make it invalid. */
  warnings: string[];
  /** Width of a bin of its series, in seconds. */
  bin_s: number;
  /** One per kind of series; null if this trial has no such series. */
  series: (Points | null)[];
  /**
   * When playback stalled (with several players, in at least half of them): from and to, in
   * seconds.
   */
  stalls: [number, number][];
  /** What limited its viewers and flows; the viewers first. */
  limits: PageLimits[];
  /** Its stalls, freezes, late and missing stretches and falls of the quality, the longest first. */
  effects: EffectCauses[];
  /** Effects that are not among them, because there are too many. */
  effects_left_out: number;
}

/** How far a trial got. */
export type PageState = "complete" | "skipped" | "missing" | "damaged";

/** What the self-check of one direction of one link found. */
export interface SelfCheck {
  /** The link's name. */
  link: string;
  /** Which of its directions. */
  direction: "down" | "up";
  /**
   * Which attempt this was, from 1. A link is checked again if a check fails or measures nothing, because a machine
   * that was busy for a moment may cause it. This is the last attempt.
   */
  attempt: number;
  /** Its parts. */
  checks: Check[];
  /** True if all parts hold. */
  ok: boolean;
}

/** One quantity, asked for and measured. */
export interface Check {
  /** The quantity. */
  what: "rate" | "delay" | "loss" | "queue" | "accounting";
  /** Its unit. */
  unit: "bit/s" | "ms" | "ratio" | "bytes" | "packets";
  /** What the scenario asks for; null for no limit. */
  asked: number | null;
  /** What was measured; null if it could not be. */
  measured: number | null;
  /** The least that passes; null for no bound. */
  at_least: number | null;
  /** The most that passes; null for no bound. */
  at_most: number | null;
  /** True if it passes; null if it was not measured. */
  ok: boolean | null;
  /** Why it was not measured, or what it means. */
  note: string | null;
}

/**
 * What one direction of a link did in a trial. `offered` = `delivered` + `dropped` + `queued`,
 * less `duplicated`; what does not add up is `unaccounted`.
 */
export interface LinkTotals {
  /** The link's name. */
  link: string;
  /** Which of its directions. */
  direction: "down" | "up";
  /**
   * The segment whose medium the link's stations share with those of other links; null for other links, and in records
   * of earlier versions.
   */
  segment: string | null;
  /** Packets that arrived. */
  offered: number;
  /** Packets handed to the receiving host. */
  delivered: number;
  /** Packets dropped on purpose, by cause. */
  dropped: Partial<Record<"aqm" | "collisions" | "corrupt" | "duplicate" | "lifetime" | "limit" | "loss" | "queue" | "retry" | "size", number>>;
  /** Packets still in the link at the end. */
  queued: number;
  /** Copies that the link made. */
  duplicated: number;
  /** Those of them that were handed to the receiving host; `delivered` includes them. Null in records of earlier versions. */
  duplicates_delivered: number | null;
  /** Packets lost by the emulator itself: socket drops and failed sends. Must be 0. */
  unaccounted: number;
  /** Frames that are not IP and were not carried. */
  foreign: number;
  /** Actual minus scheduled departure. */
  lateness: Lateness;
  /**
   * The most by which the recorded departure of a packet may differ from the actual one: how long the system call
   * took that it left with.
   */
  departure_error: Lateness;
  /**
   * The largest 99th percentile of `lateness` at which this direction is valid; null in records of earlier versions,
   * where it was 2000.
   */
  lateness_bound_us: number | null;
  /** Share of one core that the emulator took for the whole link. */
  cpu_cores: number | null;
  /** Share of the time in which a thread of the link was of the real-time class; 0 for an ordinary user. */
  real_time: number | null;
  /** How often the link's other thread took over because the one on duty was not awake in time. */
  takeovers: number;
}

/** Times over all packets that were delivered: how late the emulator was, or how exact a time is. */
export interface Lateness {
  /** Median; null if nothing was delivered. */
  p50_us: number | null;
  /** 99th percentile. */
  p99_us: number | null;
  /** Worst. */
  max_us: number | null;
}

/**
 * A plain cable, and which offloads of its two interfaces the kernel had on, by its own names. If
 * none of the segmentation offloads (`tx-…-segmentation`) is on, every packet crossed on its own.
 */
export interface Cable {
  /** Its name: `FROM-TO`. */
  link: string;
  /** What is on at the `from` end. */
  from: string[];
  /** What is on at the `to` end. */
  to: string[];
}

/** How one endpoint ended. */
export interface EndpointOutcome {
  /** Its name in the scenario. */
  name: string;
  /** Its host. */
  host: string;
  /** Its kind in the scenario, such as `origin`. */
  kind: string;
  /** Exit code; null if a signal ended it. */
  exit_code: number | null;
  /** The signal that ended it. */
  signal: number | null;
  /** Why it failed; null if it did not. */
  failure: string | null;
  /** Its log below the trial's folder. */
  log: string;
  /**
   * When it was asked to stop before the trial's end, as its `end` in the scenario says, in seconds from the trial's start;
   * null if it was not.
   */
  left_s: number | null;
  /**
   * When it had no video, as `pauses` in the scenario say: of a sender its own, of a viewer those of what it views. Absent
   * without any.
   */
  pauses?: Pause[];
  /** Whether it ran while it should have; null if that is not known. */
  lateness: EndpointLateness | null;
}

/** A time without video, in seconds from the trial's start. */
export interface Pause {
  /** When it begins. */
  from_s: number;
  /** When it ends. */
  to_s: number;
}

/** Whether an endpoint ran while it should have: a summary of its rows in table `lateness`. */
export interface EndpointLateness {
  /** How often it was looked. */
  looks: number;
  /** The longest time in which it did not run. */
  worst_s: number;
  /** When that began, from the trial's start. */
  worst_from_s: number;
  /** The longest that does not make the trial invalid. */
  bound_s: number;
  /** Rows of the table in which it was longer than that. */
  times_over: number;
  /** Threads whose waits for a CPU are not known, the most at one time: a look reads 512 threads of all endpoints. */
  threads_left_out: number;
}

/** Flows of a trial that one endpoint opened for the same purpose. */
export interface PageFlow {
  /** What they carry, and between which endpoints: `video from film to viewer`. */
  what: string;
  /** The transport protocol. */
  protocol: string;
  /** The endpoint's own end, `ADDRESS:PORT`; `*` for any. */
  local: string;
  /** The other end. */
  remote: string;
  /** How many. */
  flows: number;
  /** When the first was opened, in seconds. */
  opened_s: number;
  /** When the last was closed; null if some were open when the trial ended, or that is not known. */
  closed_s: number | null;
}

/** What was made of one viewer's screen. */
export interface ScreenOutcome {
  /** The endpoint's name in the scenario. */
  endpoint: string;
  /** The video, below the trial's folder; null if there is none. */
  video: string | null;
  /** Its pixels across and down; null without a video. */
  size: [number, number] | null;
  /** Frames per second: those of the source. */
  fps: number;
  /** When its first frame was on the screen, in nanoseconds since the trial began. */
  from_ns: number;
  /** Its frames. */
  ticks: number;
  /** Frames whose stamp has the number in the records. */
  stamps_agree: number;
  /** Frames whose stamp has another number. Must be 0. */
  stamps_differ: number;
  /** Frames whose stamp cannot be read. */
  stamps_unread: number;
  /** Scores by ITU-T P.1203; null without the program `p1203-standalone` or if it failed. */
  p1203: P1203 | null;
  /** Programs and models that scored it, with their versions; empty if it has no scores. */
  scored_by: Record<string, string>;
  /**
   * Why there is no video, or there are no scores, or what is wrong with them; null if all is
   * well.
   */
  problem: string | null;
}

/** Scores of one viewing by ITU-T P.1203; all scores are from 1 (bad) to 5 (excellent). */
export interface P1203 {
  /** The overall opinion, `O.46`. */
  o46: number;
  /** That of video and sound without stalls, `O.35`; null if the program does not report it. */
  o35: number | null;
  /** That of start-up and stalls alone, `O.23`; null if the program does not report it. */
  o23: number | null;
  /** Mode of the Recommendation: 0, bit rates, sizes and frame rates alone. */
  mode: number;
  /** Media shown, in seconds. The Recommendation is valid for 60 to 300. */
  media_s: number;
}

/** A value per bin, to four significant digits; null where nothing was measured. */
export type Points = (number | null)[];

/** What limited a viewer or a flow over time. */
export interface PageLimits {
  /** The viewer's endpoint, or the flow. */
  name: string;
  /** Stretches of time: from and to in seconds, and the cause, an index into the page's `causes`. */
  spans: [number, number, number][];
}

/** An effect and its causes. */
export interface EffectCauses {
  /** The viewer. */
  subject: string;
  /** What it was. */
  effect: "limit" | "trial" | "stall" | "freeze" | "late" | "missing" | "quality" | "startup" | "frame_rate";
  /** When it began, in seconds. */
  from_s: number;
  /** When it ended, in seconds. */
  to_s: number;
  /** Its causes, the greatest share first. */
  causes: CauseShare[];
  /** From the effect back to its cause. */
  chain: ChainStep[];
  /** All of it in words. */
  sentence: string;
}

/** A cause and its share. */
export interface CauseShare {
  /** The cause. */
  cause: "no_request" | "application" | "round_trip" | "handshake" | "manifest" | "send_buffer" | "congestion_window" | "receive_window" | "slow_reader" | "pacing" | "link_rate" | "rate_step" | "competing" | "bufferbloat" | "outage" | "policer" | "loss" | "head_of_line" | "corruption" | "reordering" | "delay" | "jitter" | "ack_path" | "timeout" | "oversized_rung" | "no_catch_up" | "underestimate" | "quality_change" | "encoder" | "encoder_choice" | "jitter_buffer" | "key_frame" | "cache" | "server_processor" | "client_processor" | "emulator" | "unknown";
  /** Its share, 0 to 1. */
  share: number;
  /** What the trial without it showed; absent unless `suiro why --prove` was asked. */
  proof?: Proved | null;
}

/** What the trial without a cause showed. */
export interface Proved {
  /** Whether it was the cause. */
  verdict: "proved" | "refuted" | "not_tried";
  /** The trial that was run, such as `without the outage of link access`; null if none was. */
  change: string | null;
  /** How long the effect lasted, in seconds. */
  was_s: number;
  /** How much of it remained without the cause, in seconds; null if that was not tried. */
  remains_s: number | null;
  /** Seeds with which the cause was tried, that of the trial itself first. */
  seeds: number;
  /** Of these, how many have the effect if nothing is changed. */
  seeds_with_effect: number;
  /** Of these with the effect, how many showed that it was the cause. */
  seeds_proved: number;
  /** All of it in words. */
  sentence: string;
}

/** A step of a chain. */
export interface ChainStep {
  /** What happened. */
  what: string;
  /** Rows of a table that show it. */
  evidence: string;
}

/** Very many cells and trials, column by column. A page expands them when it is opened. */
export interface PageMany {
  /** Sums over all trials. */
  totals: PageTotals;
  /** For each axis, the place of each cell's label in it; null where a cell has none. */
  values: ((number | null)[])[];
  /** One per metric. */
  metrics: PageColumn[];
  /** The cell of each trial. */
  cells: number[];
  /** The repetition of each trial. */
  repetitions: number[];
  /** How long each trial measured, in seconds. */
  durations: PageValues;
  /** The machine of each trial: an index into the page's `machines`. */
  machines: (number | null)[];
  /** The folder of each trial, below the results folder. */
  folders: string[];
  /** The trials that have a page of their own. */
  own_pages: number[];
  /** The trials that are not complete and valid, or have warnings. */
  exceptions: PageException[];
  /** How many warnings there are of all trials; the exceptions have those of the first trials. */
  warnings: number;
}

/** What self-checks and links showed, over all trials. */
export interface PageTotals {
  /** Quantities that passed their self-check. */
  checks_passed: number;
  /** Those that did not. */
  checks_failed: number;
  /** Those that were not measured. */
  checks_skipped: number;
  /** Packets that arrived at links. */
  offered: number;
  /** Packets that the emulator itself lost. */
  unaccounted: number;
  /** The greatest of all 99th percentiles of lateness; null if no link carried a packet. */
  late_p99_us: number | null;
}

/** A metric of very many cells and trials. If every cell has one trial, `mean` has all and the others are empty. */
export interface PageColumn {
  /** The mean of each cell. */
  mean: PageValues;
  /** How many trials of each cell measured it. */
  n: number[];
  /** The standard deviation in each cell. */
  sd: PageValues;
  /** Half the width of each cell's 95 % confidence interval. */
  ci95: PageValues;
  /** The value of each trial. */
  trials: PageValues;
}

/** A value per cell or trial, to five significant digits: a map cannot show more. Null where nothing was measured. */
export type PageValues = (number | null)[];

/** What is particular about one of very many trials. */
export interface PageException {
  /** Its index. */
  trial: number;
  /** How far it got. */
  state: PageState;
  /** False if its figures must not be used. */
  valid: boolean;
  /** Why not; null if the page has the reasons of enough others. */
  invalid_because: string | null;
  /** Its warnings; empty if the page has those of enough others. */
  warnings: string[];
}

/** Several trials side by side, as `suiro compare` filmed them. */
export interface PageComparison {
  /** The video's name in the results folder. */
  file: string;
  /** Its poster, a data URL; null if there is none. */
  poster: string | null;
  /** The video, a data URL; null if it is too large for a page. */
  video: string | null;
}

/** One claim and what was measured. */
export interface Finding {
  /** Such as `S0.1`. */
  id: string;
  /** What was claimed. */
  claim: string;
  /** The published figure, in words. */
  published: string | null;
  /** The measured figure, in words. */
  measured: string | null;
  /** Whether it holds over the means of the valid repetitions; null if that is inconclusive, or cannot be judged. */
  holds: boolean | null;
  /** The same in words; null if it cannot be judged. */
  verdict: "does not hold" | "inconclusive" | "holds" | null;
  /** Why. */
  because: string;
  /** The formula that is judged, as in the study's file. */
  formula: string;
  /** Why it is judged this way. */
  note: string | null;
  /** Repetitions that can be judged by themselves. */
  judged_in: number;
  /** The number of them in which it holds. */
  held_in: number;
}

/** A study as published, compared with what was measured. */
export interface PageStudy {
  /** Such as `S0`. */
  id: string;
  /** One line on what it is about. */
  title: string;
  /** Where it was published. */
  source: string;
  /** How its figures were read. */
  notes: string | null;
  /** Its tables. */
  tables: ComparedTable[];
  /** Its figures, drawn from this run. */
  figures: PageFigure[];
}

/** A published table and what was measured. */
export interface ComparedTable {
  /** Such as `4-1`. */
  id: string;
  /** What it shows. */
  title: string;
  /** How its figures were read. */
  note: string | null;
  /** The greatest factor, either way, between measured and published for "near". */
  tolerance: number;
  /** Titles of its columns. */
  columns: string[];
  /** Its rows. */
  rows: ComparedRow[];
  /** How many numbers are near, and how many were measured. */
  near: [number, number];
  /**
   * How many pairs of numbers are in the published order, and how many pairs were measured and
   * published as different, in one unit.
   */
  ordered: [number, number];
}

/** A row of a published table. */
export interface ComparedRow {
  /** Its title. */
  title: string;
  /** One per column. */
  entries: ComparedEntry[];
}

/** A published number and what was measured. */
export interface ComparedEntry {
  /** The metric of the summary. */
  metric: string;
  /** The unit of both numbers. */
  unit: string;
  /** As printed. */
  published: number;
  /** The mean of the valid repetitions; null if there is none. */
  measured: number | null;
  /** Measured over published; null if either is missing or zero. */
  ratio: number | null;
  /** Whether they are within the table's tolerance; null if not measured. */
  near: boolean | null;
  /** Why it was not measured. */
  because: string | null;
}

/** A published figure, to be drawn from this run. */
export interface PageFigure {
  /** Such as `4.5`. */
  id: string;
  /** What it shows. */
  title: string;
  /** The unit that the study draws it in. */
  unit: string;
  /** Each point is the mean over this many seconds; null if as recorded. */
  mean_over_s: number | null;
  /** Where the time axis ends, in seconds. */
  seconds: number;
  /** The axis whose labels are the lines; null if the lines are quantities of one cell. */
  axis: string | null;
  /** Its lines. */
  lines: PageFigureLine[];
  /** The study's comments on periods of time. */
  bands: PageBand[];
  /** Which repetition is drawn. */
  drawn: string;
}

/** A line of a figure of a study. */
export interface PageFigureLine {
  /** The label. */
  label: string;
  /** Which of `series`; null if this run recorded none of the name. */
  series: number | null;
  /** Size of the series' unit in the figure's unit. */
  scale: number;
  /** The trial drawn: an index into `trials`; null if there is none. */
  trial: number | null;
  /** Why there is none. */
  because: string | null;
}

/** A period of time and the study's comment on it. */
export interface PageBand {
  /** Where it begins, in seconds. */
  from: number;
  /** Where it ends, in seconds. */
  to: number;
  /** The comment. */
  text: string;
}
