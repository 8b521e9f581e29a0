// The charts of a cell: rates with the link that bounds them, delays and latency. Of several flows, each has a line.

import { type Band, draw, type Envelope, type Line } from "./chart";
import { type Look, lookOf, type Run, runs, trialsOf } from "./data";
import { h, s } from "./dom";
import type { Key } from "./export";
import { most } from "./format";
import type { Page, PageSeries } from "./generated/page";
import { sample } from "./legend";
import { select } from "./plot";
import { isConfigured, isRate } from "./rank";

/** Height of a chart, in pixels. */
const HEIGHT = 190;
/** A link carries the flows that are drawn if it delivered this share of one of them. */
const CARRIES = 0.5;
/** A link is no bottleneck if its rate is more than this many times the greatest rate that is drawn. */
const FAR = 4;
/** Several flows share a link that delivered this many times what one of them got. */
const SHARED = 1.2;
/** TCP flows next to video are so thin, in pixels. */
const THIN = 1;
/** Whose dashes they have: four that are easily told apart, none of them solid or dotted. */
const DASHED = [1, 3, 4, 5];

type Numbered = { info: PageSeries; index: number };

/** How the line of a series looks. */
interface LineLook extends Look {
  width?: number;
}

/**
 * The section of charts on a page without a board, of the cells in which there are several flows; null if there are
 * none.
 */
export function flows(page: Page): HTMLElement | null {
  const several = (cell: number) => flowsOf(page, runs(page, cell, "all")).length > 0;
  const all = page.many ? [] : page.cells.map((_, cell) => cell);
  const cells = all.filter(several);
  if (!cells.length) return null;
  const labels = cells.map((cell) => page.cells[cell]?.label ?? "");
  const drawn = (at: number) => charts(page, cells[at] ?? 0, labels[at] ?? "");
  const box = h("div", { class: "opened" }, ...drawn(0));
  const choice = select("cell", labels, 0, (at) => box.replaceChildren(...drawn(at)));
  return h(
    "section",
    { id: "flows", "aria-labelledby": "flows-title" },
    h("h2", { id: "flows-title" }, "Each flow"),
    cells.length > 1 && h("p", { class: "controls screen" }, choice),
    box,
  );
}

/**
 * The charts of a cell of this label, of what was recorded: of all repetitions, or of one at a time where each has several
 * flows, whose lines would hide each other.
 */
export function charts(page: Page, cell: number, label: string): HTMLElement[] {
  const all = runs(page, cell, "all");
  const drawn = (some: Run[]) => chartsOf(page, cell, label, some);
  if (all.length < 2 || !flowsOf(page, all).length) return drawn(all);
  const valid = trialsOf(page, cell).filter((trial) => trial.valid && trial.bin_s > 0);
  const names = [...valid.map(({ repetition }) => `repetition ${repetition}`), "all repetitions"];
  const box = h("div", {}, ...drawn(all.slice(0, 1)));
  const choice = select("charts of", names, 0, (at) => {
    box.replaceChildren(...drawn(at < all.length ? all.slice(at, at + 1) : all));
  });
  return [h("p", { class: "controls screen" }, choice), box];
}

function chartsOf(page: Page, cell: number, label: string, all: Run[]): HTMLElement[] {
  const named = (name: string) => namedOf(page, all, name);
  const { what, rates } = ratesOf(page, all);
  const limit = bound(page, cell, all, rates);
  const envelopes = envelopesOf(page, all);
  const others =
    envelopes.length > 0 && "shaded: the other flows, from the least rate to the greatest";
  const words = [limit?.words, others].filter((some) => !!some).join("; ");
  const slowest = widest(named("link.queue_delay_ms"), all);
  const queue = slowest.map(({ info }) => place(info) || "the link")[0] ?? "";
  const chart = (title: string, unit: string, chosen: Numbered[], more: Partial<Drawn> = {}) => {
    const lines = all.flatMap((run) => linesOf(chosen, run, label, all.length > 1));
    const any = lines.some((line) => line.values.some((value) => value !== null));
    const drawn = { lines: [...lines, ...(more.lines ?? [])], envelopes: more.envelopes ?? [] };
    return any ? [figure(title, unit, drawn, keysOf(chosen))] : [];
  };
  const more = { lines: limit?.lines ?? [], envelopes };
  return [
    ...chart(`${what}${words ? ` (${words})` : ""}`, "bit/s", rates, more),
    ...chart(`Queueing delay of ${queue}`, "ms", slowest),
    ...chart("Latency", "ms", named("player.latency_ms")),
  ];
}

/** What a chart has of the rates: each flow if there are several of a kind, else the means, else the links. */
export function ratesOf(page: Page, all: Run[]): { what: string; rates: Numbered[] } {
  const each = flowsOf(page, all);
  if (each.length) return { what: "Rate of each flow", rates: each };
  const named = (name: string) => namedOf(page, all, name);
  const video = named("fairness.video_bps");
  if (!video.length) return { what: "Rate of each link", rates: named("link.throughput_bps") };
  return { what: "Mean rate per flow", rates: [...video, ...named("fairness.tcp_bps")] };
}

/** The series of one flow each, video before TCP, by name. */
function flowsOf(page: Page, all: Run[]): Numbered[] {
  const name = ({ info }: Numbered) => info.instance ?? "";
  const byName = (a: Numbered, b: Numbered) =>
    name(a).localeCompare(name(b), "en", { numeric: true });
  const of = (kind: string) => namedOf(page, all, `fairness.${kind}_flow_bps`).sort(byName);
  return [...of("video"), ...of("tcp")];
}

/** Whether a series is that of one TCP flow. */
function isTcp({ name }: PageSeries): boolean {
  return name.endsWith(".tcp_flow_bps");
}

/** Between which rates the flows without a line are, of each run. */
export function envelopesOf(page: Page, all: Run[]): Envelope[] {
  const [least] = namedOf(page, all, "fairness.others_least_bps");
  const [most] = namedOf(page, all, "fairness.others_most_bps");
  return all.flatMap(({ points, bin_s }) => {
    const low = least ? points(least.index) : null;
    const high = most ? points(most.index) : null;
    return low && high ? [{ bin_s, low, high }] : [];
  });
}

/** Colours and dashes for all but single TCP flows, which are thin and dashed, in the colour of the text. */
function looksOf(chosen: Numbered[]): LineLook[] {
  let [others, tcp] = [0, 0];
  return chosen.map(({ info }) => {
    if (!isTcp(info)) return lookOf(others++);
    const { dash } = lookOf(DASHED[tcp++ % DASHED.length] ?? 1);
    return { colour: "var(--ink)", dash, width: THIN };
  });
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
  const sum = { colour: "var(--muted)", dash: "1 2.5", style: "line" } as const;
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
  const looks = looksOf(chosen);
  return chosen.flatMap(({ index, info }, place): Line[] => {
    const values = run.points(index);
    const label = `${cell}: ${nameOf(info)}`;
    const look = { ...(looks[place] as LineLook), faint, bin_s: run.bin_s };
    return values ? [{ label, ...look, style: "line", values }] : [];
  });
}

/** What a line is: of one flow its name, of others what was measured, and where. */
function nameOf(info: PageSeries): string {
  const { name, label, instance } = info;
  if (instance && name.endsWith("_flow_bps")) return isTcp(info) ? `${instance}, TCP` : instance;
  return [label, place(info)].filter((word) => word).join(", ");
}

/** The link or flow of a series, and its direction; empty if it is the only one. */
function place({ instance, direction }: PageSeries): string {
  return [instance, direction].filter((word) => word).join(" ");
}

/** What the lines of a chart are; empty if there is but one. */
export function keysOf(chosen: Numbered[]): Key[] {
  if (chosen.length < 2) return [];
  const looks = looksOf(chosen);
  return chosen.map(({ info }, at) => ({ label: nameOf(info), ...(looks[at] as LineLook) }));
}

/** What a chart draws. */
interface Drawn {
  lines: Line[];
  envelopes: Envelope[];
}

function figure(title: string, unit: string, { lines, envelopes }: Drawn, keys: Key[]) {
  const width = 860;
  const end = Math.max(...lines.map((line) => line.values.length * line.bin_s));
  const bands: Band[] = [];
  const x: [number, number] = [0, end];
  const spec = { unit, lines, bands, envelopes, x, width, height: HEIGHT };
  const label = `${title} over time`;
  const svg = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  svg.append(draw({ ...spec, floating: false }).group);
  const named = keys.map((key) => h("span", { class: "key" }, sample(key), key.label));
  const legend = named.length > 0 && h("div", { class: "legend plain" }, ...named);
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title)), legend, svg);
}
