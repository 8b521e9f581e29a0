// What some cells had in common: the greatest causes of what their viewers saw, or else what limited their flows.

import { trialsOf } from "./data";
import { plain, whole } from "./format";
import type { EffectCauses, Page } from "./generated/page";

/** Causes that are named. */
const CAUSES = 2;

/**
 * A sentence about the causes in these cells, over their valid trials; null if none is known. Time counts once for each
 * viewer: that of several effects at once is divided among them.
 */
export function causes(page: Page, cells: number[]): string | null {
  const trials = cells.flatMap((cell) => trialsOf(page, cell)).filter(({ valid }) => valid);
  const times = new Map<string, number>();
  for (const { effects } of trials) {
    const real = effects.filter(({ effect }) => !["limit", "trial"].includes(effect));
    for (const viewer of new Set(real.map(({ subject }) => subject)))
      share(
        real.filter(({ subject }) => subject === viewer),
        times,
      );
  }
  const named = greatest(page, times);
  if (named) {
    const longest = Math.max(...trials.map(({ effects }) => effects.length));
    const cut = trials.some(({ effects_left_out }) => effects_left_out > 0);
    const which = cut ? ` (the longest ${whole(longest)} of a trial)` : "";
    return `Its stalls, late frames and other effects there${which} came from: ${named}.`;
  }
  const limits = greatest(page, limited(page, cells));
  return limits ? `Its flows there were limited by: ${limits}.` : null;
}

/** Adds the time of one viewer's effects to their causes. */
function share(effects: EffectCauses[], times: Map<string, number>): void {
  const ends = effects.flatMap(({ from_s, to_s }) => [from_s, to_s]).sort((a, b) => a - b);
  ends.slice(1).forEach((to, index) => {
    const from = ends[index] ?? to;
    const active = effects.filter(({ from_s, to_s }) => from_s <= from && to <= to_s);
    for (const { cause, share } of active.flatMap((effect) => effect.causes))
      times.set(cause, (times.get(cause) ?? 0) + (share * (to - from)) / active.length);
  });
}

/** The share of the time that each cause limited flows, mean over the valid trials of these cells, times their number. */
function limited(page: Page, cells: number[]): Map<string, number> {
  return new Map(
    page.metrics.flatMap(({ name }, index) => {
      const cause = /^why\.(?!stalled_)(.+)_ratio$/.exec(name)?.[1];
      const spreads = cells.flatMap((cell) => page.cells[cell]?.metrics[index] ?? []);
      const sum = spreads.reduce((all, { mean, n }) => all + mean * n, 0);
      return cause && sum > 0 ? [[cause, sum] as const] : [];
    }),
  );
}

/** The greatest of several causes, with their shares; empty if there is none. */
function greatest(page: Page, times: Map<string, number>): string {
  const sum = [...times.values()].reduce((a, b) => a + b, 0);
  const label = (name: string) =>
    page.causes.find(({ cause }) => cause === name)?.label ?? name.replaceAll("_", " ");
  return [...times]
    .sort((a, b) => b[1] - a[1])
    .slice(0, CAUSES)
    .filter(([, time]) => time > 0)
    .map(([cause, time]) => `${label(cause)} ${plain((100 * time) / sum, 2)} %`)
    .join(", ");
}
