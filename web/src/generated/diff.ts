// Generated from crates/report/src/diff/mod.rs: do not edit.
// make generate

/** Results folders compared: what `suiro diff --json` prints, and what its page shows. */
export interface Difference {
  /** Version of suiro that compared them. */
  suiro: string;
  /** The folders; the first is what the others are compared with. */
  folders: DiffFolder[];
  /** What each metric is. */
  metrics: PageMetric[];
  /** A difference below this share of the first mean counts as none. */
  margin: number;
  /** The tests and verdicts, in words. */
  test: string;
  /** Each folder but the first, compared with the first. */
  comparisons: Comparison[];
  /** The trials' values of the main metrics. */
  samples: Sample[];
}

/** A results folder. */
export interface DiffFolder {
  /** `A`, `B` and so on. */
  letter: string;
  /** Where it is, as typed. */
  path: string;
  /** The scenario's name. */
  scenario: string;
  /** Version of suiro that ran it. */
  suiro: string;
  /** When the run began: UTC, RFC 3339; null in virtual time. */
  started: string | null;
  /** The seed of the run, as text: it may exceed what a JavaScript number holds. */
  seed: string;
  /** Its trials. */
  trials: number;
  /** Those that are valid. */
  valid: number;
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

/** A folder compared with the first. */
export interface Comparison {
  /** The second folder: an index into `folders`. */
  folder: number;
  /** What differs in scenario, versions and machine. */
  settings: Setting[];
  /** Metrics by verdict, over all cells. */
  verdicts: Record<string, number>;
  /** The cells that both folders have. */
  cells: ComparedCell[];
  /** Cells of the first folder that match none of the second. */
  only_first: string[];
  /** Cells of the second folder that match none of the first. */
  only_second: string[];
}

/** Something that differs between two folders. */
export interface Setting {
  /** What it is about. */
  kind: SettingKind;
  /** A dotted path of the scenario, the name of a program, or what of the machine. */
  name: string;
  /** In the first folder; null if there is none. */
  first: string | null;
  /** In the second folder. */
  second: string | null;
}

/** What a difference between two folders is about. */
export type SettingKind = "scenario" | "version" | "machine";

/** A cell of both folders. */
export interface ComparedCell {
  /** What it is called: the labels of both. */
  label: string;
  /** Its place among the cells of the first folder's samples. */
  first_label: string;
  /** The same of the second folder's. */
  second_label: string;
  /** What was compared. */
  diff: CellDiff;
  /** The causes, as names of metrics, whose shares differ; that with the greatest difference first. */
  causes: string[];
}

/** A cell of each run, compared. */
export interface CellDiff {
  /** The cell of the first run. */
  first: Record<string, unknown>;
  /** The cell of the second run. */
  second: Record<string, unknown>;
  /** Valid trials of the first. */
  first_valid: number;
  /** Valid trials of the second. */
  second_valid: number;
  /**
   * Pairs of valid trials with the same seed; null if trials are not paired, because the seeds differ. A metric that was
   * not measured in both trials of any pair is compared as if they were not paired.
   */
  pairs: number | null;
  /** Each metric that either has. */
  metrics: Record<string, MetricDiff>;
}

/** A metric of both cells, compared. */
export interface MetricDiff {
  /**
   * Its mean over the valid trials of the first in which it was measured; null if in none. If trials are paired, and it was
   * measured in both trials of a pair, only such pairs count.
   */
  first: number | null;
  /** The same of the second. */
  second: number | null;
  /** Trials of the first, or pairs, that the difference is of. */
  first_n: number;
  /** Trials of the second, or pairs. */
  second_n: number;
  /**
   * The mean of the second minus that of the first, of pairs if any was measured in both trials; null if either side is
   * not measured.
   */
  difference: number | null;
  /** The lower end of the 95 % confidence interval of the difference; null for one repetition. */
  low: number | null;
  /** Its upper end. */
  high: number | null;
  /**
   * The p value of no difference, before it was adjusted; null for fewer than three repetitions, and if all values are
   * identical.
   */
  p: number | null;
  /** The p value adjusted for the number of metrics and cells. */
  q: number | null;
  /** What became of it; null if either is not measured. */
  verdict: DiffVerdict | null;
}

/** What became of a metric. */
export type DiffVerdict = "worse" | "better" | "higher" | "lower" | "too_noisy" | "same";

/** What a trial measured. */
export interface Sample {
  /** Its folder: an index into `folders`. */
  folder: number;
  /** Its cell's label. */
  cell: string;
  /** Its repetition, from 1. */
  repetition: number;
  /** The main metrics by name; those that were not measured are left out. */
  values: Record<string, number>;
}
