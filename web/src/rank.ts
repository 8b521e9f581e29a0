// Which of several values is better: only where their 95 % intervals show it.

import { trialsOf } from "./data";
import { type Scale, shown } from "./format";
import type { Page, PageMetric, PageSeries, PageSpread, PageTrial } from "./generated/page";

/** Repetitions that a rank needs, as a verdict of `suiro diff` does. */
export const LEAST = 3;
/** Why one repetition has no ranks, and what is missing with them. */
const ONCE =
  "one repetition, where small differences mean nothing, as it has no interval; so no value is coloured, and no row is called the last";
/** Rates that differ by a smaller share are alike: one that is random has another mean in every trial. */
const RATES_ALIKE = 0.02;

/** The rank of each value from 1, the best; null where nothing was measured, or too seldom. Or why none is given. */
export type Ranking = { ranks: (number | null)[]; last: number } | { because: string };

/** A value, as printed and with its interval. */
interface Value {
  at: number;
  mean: number;
  text: string;
  low: number;
  high: number;
}

type Spreads = (PageSpread | null)[];

/**
 * Ranks values, without those of too few repetitions. A rank ends where a gap between the intervals begins, so that the
 * values of one do not differ from each other by more than their intervals.
 */
export function ranking(metric: PageMetric, spreads: Spreads, scale: Scale): Ranking {
  const enough = spreads.map((spread) => (spread && spread.n >= LEAST ? spread : null));
  const because = unranked(metric, enough) && unranked(metric, spreads);
  if (because !== null) return { because };
  const order = valuesOf(metric, enough, scale);
  order.sort((a, b) => a.low - b.low || a.high - b.high);
  const groups: Value[][] = [];
  let reach = Number.NEGATIVE_INFINITY;
  for (const value of order) {
    const group = groups.at(-1);
    // What looks the same is as good.
    const same = group?.some(({ text }) => text === value.text);
    if (group && (value.low <= reach || same)) group.push(value);
    else groups.push([value]);
    reach = Math.max(reach, value.high);
  }
  if (groups.length < 2) return { because: "the intervals overlap" };
  if (metric.better === "higher") groups.reverse();
  const rank = new Map(groups.flatMap((group, place) => group.map(({ at }) => [at, place + 1])));
  return { ranks: spreads.map((_, at) => rank.get(at) ?? null), last: groups.length };
}

/** The places of the best value and of those whose intervals overlap with its own; empty if that is all or none. */
export function best(metric: PageMetric, spreads: Spreads, scale: Scale): Set<number> {
  if (unranked(metric, spreads) !== null) return new Set();
  const sign = metric.better === "higher" ? -1 : 1;
  const [first, ...others] = valuesOf(metric, spreads, scale).sort(
    (a, b) => sign * (a.mean - b.mean),
  );
  const alike = others.filter(
    ({ text, low, high }) =>
      first && ((low <= first.high && first.low <= high) || text === first.text),
  );
  if (!first || alike.length === others.length) return new Set();
  return new Set([first, ...alike].map(({ at }) => at));
}

/** Why values have no ranks; null if they can be compared. */
function unranked({ better }: PageMetric, spreads: Spreads): string | null {
  const counts = spreads.flatMap((spread) => spread?.n ?? []);
  if (better === "neither") return "neither more nor less of it is better";
  if (counts.length < 2) return "fewer than two values were measured";
  if (counts.every((n) => n === 1)) return ONCE;
  if (counts.some((n) => n < LEAST)) return `a value has fewer than ${LEAST} valid repetitions`;
  return null;
}

function valuesOf({ digits }: PageMetric, spreads: Spreads, scale: Scale): Value[] {
  return spreads.flatMap((spread, at) => {
    if (!spread) return [];
    const { mean, ci95 } = spread;
    const half = ci95 ?? Number.POSITIVE_INFINITY;
    const text = shown(mean, scale, digits);
    return [{ at, mean, text, low: mean - half, high: mean + half }];
  });
}

/**
 * Whether these cells asked the same of their links, as `comparable` says of all cells: of each direction rate, delay and
 * loss, and the rate over the trial. False if that is not known.
 */
export function alikeLinks(page: Page, cells: number[]): boolean {
  if (page.comparable) return true;
  const [first, ...others] = cells.flatMap((cell) => {
    const trials = trialsOf(page, cell);
    const run = trials.find(({ self_checks }) => self_checks.length > 0);
    return trials.length ? [run ? asked(page, run) : null] : [];
  });
  const near = (a: number, b: number | undefined) =>
    b !== undefined && Math.abs(a - b) <= RATES_ALIKE * Math.max(Math.abs(a), Math.abs(b));
  const same = (other: Map<string, number> | null) =>
    !!first && first.size === other?.size && [...first].every(([k, v]) => near(v, other.get(k)));
  return !!first && others.every(same);
}

/** What a trial asked of its links, by name. */
function asked(page: Page, trial: PageTrial): Map<string, number> {
  const all = trial.self_checks.flatMap(({ link, direction, checks }) =>
    checks.flatMap(({ what, asked }): [string, number][] =>
      asked !== null && ["rate", "delay", "loss"].includes(what)
        ? [[`${link} ${direction} ${what}`, asked]]
        : [],
    ),
  );
  const rates = page.series.flatMap((info, index): [string, number][] => {
    const values = (trial.series[index] ?? []).filter((value) => value !== null);
    const sum = values.reduce((a, b) => a + b, 0);
    return isRate(info) && isConfigured(info) && values.length
      ? [[info.name, sum / values.length]]
      : [];
  });
  return new Map([...all, ...rates]);
}

/** Whether a series is the rate of a link. */
export function isRate({ name }: PageSeries): boolean {
  return /^link\.(.*\.)?rate_bps$/.test(name);
}

/** Whether such a rate is the scenario's, by its meaning; otherwise it is that at which the link happened to serve. */
export function isConfigured({ doc }: PageSeries): boolean {
  return doc.startsWith("rate configured");
}
