// The charts of a cell on the board: rates with the link that bounds them, delays and latency of all repetitions.

import { type Band, draw, type Line } from "./chart";
import { lookOf, type Run, runs, trialsOf } from "./data";
import { h, s } from "./dom";
import type { Key } from "./export";
import { most } from "./format";
import type { Page, PageSeries } from "./generated/page";
import { sample } from "./legend";
import { isConfigured, isRate } from "./rank";

/** Height of a chart, in pixels. */
const HEIGHT = 190;
/** A link carries the flows that are drawn if it delivered this share of one of them. */
const CARRIES = 0.5;
/** A link is no bottleneck if its rate is more than this many times the greatest rate that is drawn. */
const FAR = 4;
/** Several flows share a link that delivered this many times what one of them got. */
const SHARED = 1.2;

type Numbered = { info: PageSeries; index: number };

/** The charts of a cell of this label, of what was recorded. */
export function charts(page: Page, cell: number, label: string): HTMLElement[] {
  const all = runs(page, cell, "all");
  const named = (name: string) => namedOf(page, all, name);
  const [flows, tcp] = [named("fairness.video_bps"), named("fairness.tcp_bps")];
  const rates = flows.length ? [...flows, ...tcp] : named("link.throughput_bps");
  const limit = bound(page, cell, all, rates);
  const what = flows.length ? "Mean rate per flow" : "Rate of each link";
  const slowest = widest(named("link.queue_delay_ms"), all);
  const queue = slowest.map(({ info }) => place(info) || "the link")[0] ?? "";
  const chart = (title: string, unit: string, chosen: Numbered[], above: Line[] = []) => {
    const lines = all.flatMap((run) => linesOf(chosen, run, label, all.length > 1));
    const any = lines.some((line) => line.values.some((value) => value !== null));
    return any ? [figure(title, unit, [...lines, ...above], keysOf(chosen))] : [];
  };
  return [
    ...chart(`${what}${limit ? ` (${limit.words})` : ""}`, "bit/s", rates, limit?.lines),
    ...chart(`Queueing delay of ${queue}`, "ms", slowest),
    ...chart("Latency", "ms", named("player.latency_ms")),
  ];
}

/** The series of this name, whatever the link or the flow, that any of the runs recorded. */
function namedOf(page: Page, all: Run[], name: string): Numbered[] {
  const series = page.series.map((info, index) => ({ info, index }));
  return series.filter(({ info, index }) => {
    const plain = info.name.split(".");
    return `${plain[0]}.${plain.at(-1)}` === name && all.some((run) => run.points(index));
  });
}

/** The link that bounds what is drawn. */
export interface Bound {
  /** Which one, and what its lines are. */
  words: string;
  /** Its rate, and what all its flows got if they are several. */
  lines: Line[];
}

/** Bits that a series counted. */
function carried(all: Run[], index: number): number {
  return all.reduce((sum, run) => {
    const values = run.points(index) ?? [];
    return sum + run.bin_s * values.reduce<number>((total, value) => total + (value ?? 0), 0);
  }, 0);
}

/** A link that carries what is drawn, in one direction. */
interface Carrier {
  info: PageSeries;
  /** Its rate, and what it delivered: indices of series. */
  rate: number;
  throughput: number;
  mean: number;
}

/**
 * The slowest of the links that carry what is drawn, in either direction; null if it is far faster than that, so that
 * something else is the bottleneck.
 */
export function bound(page: Page, cell: number, all: Run[], drawn: Numbered[]): Bound | null {
  const series = drawn.map(({ index }) => index);
  const bits = most(series.map((index) => carried(all, index)));
  const [link] = carriers(page, cell, all, CARRIES * bits).sort((a, b) => a.mean - b.mean);
  if (!link) return null;
  const isShared = carried(all, link.throughput) > SHARED * bits;
  const greatest = top(all, isShared ? [...series, link.throughput] : series);
  if (link.mean > FAR * greatest) return null;
  const label = [link.info.instance ?? "link", link.info.direction].join(" ");
  const words = isShared
    ? `dotted: all flows of ${label}; grey: its rate`
    : `grey: the rate of ${label}, which all its flows share`;
  // In sight as a whole, unlike in the charts below: it is what the rates are compared with. Not so a rate with peaks.
  const isLevel = top(all, [link.rate]) <= FAR * greatest;
  const limit = { colour: "var(--bound)", dash: "", style: isLevel ? "step" : "bound" } as const;
  const sum = { ...lookOf(2), dash: "1 2.5", style: "line" } as const;
  const lines = all.flatMap(({ points, bin_s }): Line[] => {
    const [total, rate] = [isShared ? points(link.throughput) : null, points(link.rate)];
    return [
      ...(total ? [{ label, ...sum, faint: all.length > 1, bin_s, values: total }] : []),
      ...(rate ? [{ label, ...limit, faint: false, bin_s, values: rate }] : []),
    ];
  });
  return { words, lines };
}

/**
 * The links that delivered so many bits at least. A station of a medium is one only if its medium has a rate: a station
 * of Wi-Fi waits before every packet, so that the rate at which it was served is what it sent, and no capacity.
 */
function carriers(page: Page, cell: number, all: Run[], least: number): Carrier[] {
  const stations = new Set(
    trialsOf(page, cell)
      .flatMap(({ links }) => links)
      .flatMap(({ link, segment }) => (segment === null ? [] : [link])),
  );
  return page.series.flatMap((info, rate) => {
    const average = isRate(info) ? mean(all, rate) : null;
    if (average === null) return [];
    const name = info.name.replace(/rate_bps$/, "throughput_bps");
    const throughput = page.series.findIndex((other) => other.name === name);
    const isCapacity = !stations.has(info.instance ?? "") || isConfigured(info);
    const carries = carried(all, throughput) >= least;
    return carries && isCapacity ? [{ info, rate, throughput, mean: average }] : [];
  });
}

/** The greatest value of some series. */
function top(all: Run[], series: number[]): number {
  const values = all.flatMap((run) => series.flatMap((index) => run.points(index) ?? []));
  return most(values.map((value) => value ?? 0));
}

/** The series with the greatest mean. */
function widest(series: Numbered[], all: Run[]): Numbered[] {
  const known = series.flatMap((one) => {
    const value = mean(all, one.index);
    return value === null ? [] : [{ one, value }];
  });
  const first = known.sort((a, b) => b.value - a.value)[0];
  return first ? [first.one] : [];
}

/** The mean of a series over all runs; null if nothing was measured. */
function mean(all: Run[], index: number): number | null {
  const values = all.flatMap((run) => (run.points(index) ?? []).filter((value) => value !== null));
  return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
}

function linesOf(chosen: Numbered[], run: Run, cell: string, faint: boolean): Line[] {
  return chosen.flatMap(({ index, info }, place) => {
    const values = run.points(index);
    const label = `${cell}: ${info.label}`;
    const look = { ...lookOf(place), style: "line" as const, faint, bin_s: run.bin_s };
    return values ? [{ label, ...look, values }] : [];
  });
}

/** The link or flow of a series, and its direction; empty if it is the only one. */
function place({ instance, direction }: PageSeries): string {
  return [instance, direction].filter((word) => word).join(" ");
}

/** What the lines of a chart are; empty if there is but one. */
export function keysOf(chosen: Numbered[]): Key[] {
  if (chosen.length < 2) return [];
  return chosen.map(({ info }, index) => {
    const label = [info.label, place(info)].filter((word) => word).join(", ");
    return { label, ...lookOf(index) };
  });
}

function figure(title: string, unit: string, lines: Line[], keys: Key[]): HTMLElement {
  const width = 860;
  const end = Math.max(...lines.map((line) => line.values.length * line.bin_s));
  const bands: Band[] = [];
  const spec = { unit, lines, bands, x: [0, end] as [number, number], width, height: HEIGHT };
  const label = `${title} over time`;
  const svg = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  svg.append(draw({ ...spec, floating: false }).group);
  const named = keys.map((key) => h("span", { class: "key" }, sample(key), key.label));
  const legend = named.length > 0 && h("div", { class: "legend plain" }, ...named);
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title)), legend, svg);
}
