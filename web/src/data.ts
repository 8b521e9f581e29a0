// The page's data, and what the figures need of it.

import type { Page, PageCell, PagePanel, PageSeries, PageTrial } from "./generated/page";

/** The report's data, with very many cells and trials as others have them. */
export function report(): Page {
  const page = load();
  expand(page);
  return page;
}

/** The trials of a cell. */
export function trialsOf(page: Page, cell: number): PageTrial[] {
  return (page.cells[cell]?.trials ?? []).flatMap((index) => page.trials[index] ?? []);
}

/** Makes cells and trials of the columns that a page of very many has. */
function expand(page: Page): void {
  const { many } = page;
  if (!many) return;
  const { values, metrics, cells, repetitions, folders } = many;
  const count = (values[0] ?? metrics[0]?.mean ?? []).length || (cells.length ? 1 : 0);
  page.cells = Array.from({ length: count }, (_, index) => {
    const labels = values.map((axis, place) => page.axes[place]?.labels[axis[index] ?? -1] ?? "");
    return {
      label: labels.join(" · ") || "all",
      brief: null,
      values: labels,
      trials: [],
      metrics: metrics.map(({ mean, n, sd, ci95 }) => {
        const value = mean[index] ?? null;
        if (value === null) return null;
        const [spread, half] = [sd[index] ?? null, ci95[index] ?? null];
        return { n: n[index] ?? 1, mean: value, sd: spread, ci95: half };
      }),
    };
  });
  const own = new Set(many.own_pages);
  page.trials = cells.map((cell, index) => {
    page.cells[cell]?.trials.push(index);
    return {
      ...plainTrial(cell, repetitions[index] ?? 1, folders[index] ?? ""),
      own_page: own.has(index),
      duration_s: many.durations[index] ?? null,
      machine: many.machines[index] ?? null,
      metrics: metrics.map(
        ({ mean, trials }) => (trials.length ? trials : mean)[trials.length ? index : cell] ?? null,
      ),
    };
  });
  for (const { trial, ...particular } of many.exceptions) {
    const one = page.trials[trial];
    if (one) Object.assign(one, particular);
  }
}

/** A complete and valid trial, of which its own page shows the rest. */
function plainTrial(cell: number, repetition: number, folder: string): PageTrial {
  return {
    ...{ cell, repetition, folder, seed: "", own_page: false, state: "complete", valid: true },
    ...{ invalid_because: null, machine: null, started: null, duration_s: null, warm_up_s: 0 },
    metrics: [],
    ...{ self_checks: [], links: [], cables: [], endpoints: [], flows: [], screens: [] },
    ...{ warnings: [], bin_s: 1, series: [], stalls: [], limits: [], effects: [] },
    effects_left_out: 0,
  };
}

/** The data that the Rust side put into the page. */
export function load<T = Page>(): T {
  const element = document.getElementById("data");
  if (!element?.textContent) throw new Error("this page holds no data");
  return JSON.parse(element.textContent) as T;
}

/** How a cell looks in every figure and legend. */
export interface Look {
  colour: string;
  dash: string;
}

const COLOURS = 8;
const DASHES = ["", "8 3", "2 2.5", "12 3 2 3", "5 2", "16 4", "7 2 2 2 2 2", "3 6"];

/**
 * A look for every cell. The axis with most values chooses the colour, so that what varies can be read off. Dashes differ
 * as well, for those who cannot distinguish the colours: as many as there are, each of a few cells has one of its own.
 */
export function looks(page: Page): Look[] {
  const fitting = page.axes.map((axis, index) => ({ index, n: axis.labels.length }));
  const main = fitting.filter(({ n }) => n <= COLOURS).sort((a, b) => b.n - a.n)[0];
  const others = new Map<string, number>();
  return page.cells.map((cell, index) => {
    if (!main || page.axes.length < 2) return look(index, Math.floor(index / COLOURS) + index);
    const value = cell.values[main.index] ?? "";
    const colour = Math.max(0, page.axes[main.index]?.labels.indexOf(value) ?? 0);
    const rest = cell.values.filter((_, axis) => axis !== main.index).join("\n");
    const other = others.get(rest) ?? others.size;
    others.set(rest, other);
    const few = page.cells.length <= DASHES.length;
    return look(colour, few ? index : colour + other);
  });
}

/** A look where one axis alone varies: colour and dash, for those who cannot distinguish the colours. */
export function lookOf(label: number): Look {
  return look(label, label);
}

function look(colour: number, dash: number): Look {
  return { colour: `var(--c${colour % COLOURS})`, dash: DASHES[dash % DASHES.length] ?? "" };
}

/** Which repetition the figures show: its number, every valid one, or their mean. */
export type Repetition = number | "all" | "mean";

/** One line's worth of data: a trial, or several of a cell averaged. */
export interface Run {
  cell: number;
  valid: boolean;
  bin_s: number;
  /** How long its warm-up was: metrics are about the time after it. */
  warm_up_s: number;
  points: (series: number) => (number | null)[] | null;
  stalls: [number, number][];
}

/** What the figures draw of a cell. */
export function runs(page: Page, cell: number, repetition: Repetition): Run[] {
  const trials = (page.cells[cell] as PageCell).trials.map((index) => page.trials[index]);
  const recorded = trials.filter((trial): trial is PageTrial => !!trial && trial.bin_s > 0);
  if (typeof repetition === "number") {
    return recorded.filter((trial) => trial.repetition === repetition).map((trial) => one(trial));
  }
  const valid = recorded.filter((trial) => trial.valid);
  if (repetition === "all" || valid.length < 2) return valid.map((trial) => one(trial));
  return [mean(cell, valid)];
}

function one(trial: PageTrial): Run {
  const { cell, valid, bin_s, warm_up_s, stalls } = trial;
  const points = (index: number) => trial.series[index] ?? null;
  return { cell, valid, bin_s, warm_up_s, stalls, points };
}

/** The mean of trials, bin by bin: in the bins of the first, at the same time in all. */
function mean(cell: number, trials: PageTrial[]): Run {
  const bin_s = trials[0]?.bin_s ?? 0;
  const points = (index: number) => {
    const all = trials.flatMap((trial) => {
      const values = trial.series[index];
      return values ? [resampled(values, trial.bin_s, bin_s)] : [];
    });
    if (!all.length) return null;
    const length = Math.max(...all.map((values) => values.length));
    return Array.from({ length }, (_, bin) => {
      const known = all.map((values) => values[bin] ?? null).filter((value) => value !== null);
      return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
    });
  };
  const warm_up_s = trials[0]?.warm_up_s ?? 0;
  return { cell, valid: true, bin_s, warm_up_s, stalls: [], points };
}

/** A series in bins of another width: the mean over each, null where less than half of the time was measured. */
function resampled(values: (number | null)[], from: number, to: number): (number | null)[] {
  if (from === to) return values;
  const length = Math.ceil((values.length * from) / to - 1e-6);
  return Array.from({ length }, (_, bin) => {
    const [begin, end] = [bin * to, (bin + 1) * to];
    let [sum, measured] = [0, 0];
    for (let at = Math.floor(begin / from); at * from < end; at++) {
      const value = values[at] ?? null;
      const overlap = Math.min(end, (at + 1) * from) - Math.max(begin, at * from);
      if (value === null || overlap <= 0) continue;
      sum += value * overlap;
      measured += overlap;
    }
    const there = Math.min(end, values.length * from) - begin;
    return measured > 0 && measured >= 0.499 * there ? sum / measured : null;
  });
}

/** A figure: a panel, and those series that it shows. */
export interface Panel {
  look: PagePanel;
  title: string;
  direction: PageSeries["direction"];
  series: { index: number; info: PageSeries }[];
}

/**
 * The figures that there is data for. Series of different instances (two players, two links) have
 * figures of their own, for the cells are overlaid in each.
 */
export function panels(page: Page): Panel[] {
  return allPanels(page).filter((panel) => hasMeaning(page, panel));
}

/** The titles of the figures that are not drawn. */
export function leftOut(page: Page): string[] {
  return allPanels(page)
    .filter((panel) => !hasMeaning(page, panel))
    .map((panel) => panel.title);
}

function allPanels(page: Page): Panel[] {
  return page.panels.flatMap((look) => {
    const groups = new Map<string, Panel>();
    page.series.forEach((info, index) => {
      if (info.panel !== look.id) return;
      const { instance, direction } = info;
      const key = JSON.stringify([instance, direction]);
      const fresh: Panel = { look, title: title(look, info), direction, series: [] };
      const group = groups.get(key) ?? fresh;
      group.series.push({ index, info });
      groups.set(key, group);
    });
    return [...groups.values()];
  });
}

/** The panel's title, and which of several instances the figure is of. */
function title(look: PagePanel, { instance, direction }: PageSeries): string {
  const words = [instance, look.direction ? null : direction].filter((word) => !!word);
  return words.length ? `${look.title}, ${words.join(" ")}` : look.title;
}

/**
 * A figure is left out if nothing was measured of its main lines or all of it is zero, and a queue up if it was all but
 * empty: such figures say nothing.
 */
function hasMeaning(page: Page, panel: Panel): boolean {
  const least = panel.look.quiet_up && panel.direction === "up" ? 0.01 : 0;
  const main = panel.series.filter(
    ({ info }) => info.style !== "bound" && info.style !== "context",
  );
  return (main.length ? main : panel.series).some(({ index }) =>
    page.trials.some((trial) => trial.series[index]?.some((value) => Math.abs(value ?? 0) > least)),
  );
}
