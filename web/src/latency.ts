// What a viewer pays for low latency: each cell's latency, from its median to its 95th percentile as a bar, over quality and
// over the time in which nothing moved.

import { type Look, lookOf, looks } from "./data";
import { h, s } from "./dom";
import { most, plain, type Scale, scaleFor, ticks, tickText } from "./format";
import type { Page } from "./generated/page";
import { select } from "./plot";

const P50 = "media.latency_p50_ms";
const P95 = "media.latency_p95_ms";
/** What is drawn up, the best first: a metric that more cells have wins. */
const QUALITY = [
  "video.vmaf_mean",
  "video.bitrate_mean_bps",
  "video.rung_mean_bps",
  "flow.goodput_mean_bps",
];
const STALLED = ["video.freeze_s", "player.stall_s"];
/** Cells with a latency from which on a chart shows more than the table. */
const CELLS = 3;
/** Charts at most, one for each combination of the axes that do not choose the colour. */
const FACETS = 24;

const MARGIN = { left: 46, right: 12, top: 14, bottom: 30 };
const HEIGHTS: [number, number] = [120, 80];
const GAP = 18;
const WIDTH = 340;

/** Shapes of marks, about the origin: names that share a colour differ in them. */
const SHAPES = [
  "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
  "M-3.6 -3.6H3.6V3.6H-3.6Z",
  "M0 -5L5 0L0 5L-5 0Z",
  "M0 -5L4.6 3.6H-4.6Z",
  "M0 5L4.6 -3.6H-4.6Z",
  "M-4 -4L4 4M4 -4L-4 4",
];

/** What a name's marks look like. */
export interface Mark {
  colour: string;
  shape: string;
}

/** The marks of names, each with the colour of its cells: the first of a colour has the first shape. */
export function marks(names: { name: string; look: Look }[]): Map<string, Mark> {
  const found = new Map<string, Mark>();
  const used = new Map<string, number>();
  for (const { name, look } of names) {
    if (found.has(name)) continue;
    const before = used.get(look.colour) ?? 0;
    used.set(look.colour, before + 1);
    found.set(name, { colour: look.colour, shape: SHAPES[before % SHAPES.length] ?? "" });
  }
  return found;
}

/** A mark at a place. */
function drawn({ colour, shape }: Mark, x: number, y: number): SVGPathElement {
  const style = `fill:${colour};stroke:${colour};stroke-width:2`;
  return s("path", { d: shape, transform: `translate(${x} ${y})`, style });
}

/** A mark in a legend. */
function key(mark: Mark): SVGSVGElement {
  return s("svg", { width: 14, height: 14, "aria-hidden": "true" }, drawn(mark, 7, 7));
}

/** A cell that has a latency. */
interface Point {
  cell: number;
  p50: number;
  p95: number;
}

/** Cells that differ in nothing but the axis that chooses the mark. */
interface Facet {
  title: string;
  points: Point[];
}

/** The section; null if too few cells have a latency. */
export function latency(page: Page): HTMLElement | null {
  const points = page.many ? [] : measured(page);
  if (points.length < CELLS) return null;
  const compared = comparable(page, points);
  return compared.length > 0 ? new Latency(page, points, compared).element : null;
}

class Latency {
  readonly element: HTMLElement;
  private readonly legend = h("span", { class: "legend" });
  private readonly charts = h("div", { class: "facets" });
  private readonly rows = h("div", { class: "scroll" });
  private readonly qualities: number[];
  private readonly stalls: number[];
  private quality: number | null;
  /** The axis that chooses the mark; null: each cell has one of its own. */
  private axis: number | null;

  constructor(
    private readonly page: Page,
    private readonly points: Point[],
    private readonly axes: (number | null)[],
  ) {
    this.axis = axes[0] ?? null;
    this.qualities = present(page, points, QUALITY);
    this.quality = this.qualities[0] ?? null;
    this.stalls = STALLED.map((name) => metricAt(page, name)).filter((metric) =>
      points.some((point) => mean(page, point, metric) !== null),
    );
    this.element = h(
      "section",
      { id: "latency", "aria-labelledby": "latency-title" },
      h("h2", { id: "latency-title" }, "Latency, quality and stalls"),
      h(
        "p",
        { class: "hint" },
        "A mark is a cell: the mean over repetitions of each trial's median latency. The bar reaches to the mean of their 95th percentiles. Further left is sooner, further up better quality; below, lower stalls less. All charts have the same axes; latency is logarithmic.",
      ),
      h("div", { class: "legend" }, this.legend, ...this.choices()),
      this.charts,
      this.rows,
    );
    this.redraw();
  }

  private choices(): HTMLElement[] {
    const named = (axis: number | null) =>
      axis === null ? "" : (this.page.axes[axis]?.name ?? "");
    const labels = this.qualities.map((index) => this.page.metrics[index]?.label ?? "");
    const boxes = [
      this.choice("compare by", this.axes.map(named), (at) => {
        this.axis = this.axes[at] ?? null;
      }),
      this.choice("quality by", labels, (at) => {
        this.quality = this.qualities[at] ?? null;
      }),
    ];
    return boxes.filter((box) => box !== null);
  }

  /** What to choose from; null if there is only one. */
  private choice(name: string, labels: string[], change: (at: number) => void): HTMLElement | null {
    if (labels.length < 2) return null;
    const box = select(name, labels, 0, (at) => {
      change(at);
      this.redraw();
    });
    box.classList.add("screen");
    return box;
  }

  /** A cell's name among those that it is compared with. */
  private name(point: Point): string {
    const cell = this.page.cells[point.cell];
    return (this.axis === null ? cell?.label : cell?.values[this.axis]) ?? "";
  }

  private look(point: Point): Look {
    const all = this.axis === null ? [] : (this.page.axes[this.axis]?.labels ?? []);
    const own = this.axis === null ? looks(this.page)[point.cell] : undefined;
    return own ?? lookOf(Math.max(0, all.indexOf(this.name(point))));
  }

  /** The first of these metrics that the cell has. */
  private value(point: Point, metrics: number[]): number | null {
    return metrics.map((metric) => mean(this.page, point, metric)).find((v) => v !== null) ?? null;
  }

  private redraw(): void {
    const found = marks(
      this.points.map((point) => ({ name: this.name(point), look: this.look(point) })),
    );
    const axes = [this.quality === null ? [] : [this.quality], this.stalls].flatMap(
      (metrics, place) =>
        metrics.length === 0 ? [] : [this.vertical(metrics, HEIGHTS[place as 0 | 1])],
    );
    const range = span(this.points);
    const facets = split(this.page, this.points, this.axis);
    this.legend.replaceChildren(
      ...[...found].map(([name, mark]) => h("span", { class: "key" }, key(mark), name)),
    );
    this.charts.replaceChildren(
      ...facets.map(({ title, points }) =>
        h(
          "figure",
          {},
          title ? h("figcaption", {}, h("strong", {}, title)) : null,
          this.chart(title, points, axes, range, found),
        ),
      ),
    );
    this.rows.replaceChildren(this.table(facets, found));
  }

  private vertical(metrics: number[], height: number): Axis {
    const values = this.points.flatMap((point) => this.value(point, metrics) ?? []);
    const top = most(values) * 1.08 || 1;
    const info = this.page.metrics[metrics[0] ?? -1];
    const [label = "", ...others] = metrics.map((metric) => this.page.metrics[metric]?.label ?? "");
    return {
      metrics,
      height,
      top,
      label: [label, ...others.map((other) => other.toLowerCase())].join(" or "),
      scale: scaleFor(info?.unit ?? "", top),
    };
  }

  private chart(
    title: string,
    points: Point[],
    axes: Axis[],
    range: [number, number],
    found: Map<string, Mark>,
  ): SVGSVGElement {
    const height = axes.reduce((sum, axis) => sum + axis.height + GAP, MARGIN.top + MARGIN.bottom);
    const label = `Latency over quality and stalls${title ? `, ${title}` : ""}`;
    const svg = s("svg", {
      role: "img",
      "aria-label": label,
      viewBox: `0 0 ${WIDTH} ${height}`,
    });
    const x = (ms: number) =>
      MARGIN.left +
      (Math.log(ms / range[0]) / Math.log(range[1] / range[0])) *
        (WIDTH - MARGIN.left - MARGIN.right);
    let top = MARGIN.top;
    for (const axis of axes) {
      svg.append(frame(axis, top, x, range));
      const y = (value: number) => top + axis.height * (1 - value / axis.top);
      for (const point of points) {
        const value = this.value(point, axis.metrics);
        const mark = found.get(this.name(point));
        if (value !== null && mark) svg.append(this.mark(point, mark, x, y(value)));
      }
      top += axis.height + GAP;
    }
    svg.append(scale(top - GAP, x, range));
    return svg;
  }

  private mark(point: Point, mark: Mark, x: (ms: number) => number, y: number): SVGGElement {
    const [from, to] = [x(point.p50), x(Math.max(point.p95, point.p50))];
    return s(
      "g",
      { style: `stroke:${mark.colour};stroke-width:2`, class: "latency-mark" },
      s("title", {}, this.told(point)),
      s("line", { x1: from, x2: to, y1: y, y2: y }),
      s("line", { x1: to, x2: to, y1: y - 4, y2: y + 4 }),
      drawn(mark, from, y),
    );
  }

  /** All of a cell in words. */
  private told(point: Point): string {
    const all = this.columns().map(({ label, text }) => `${label} ${text(point)}`);
    return `${this.page.cells[point.cell]?.label}: ${all.join(", ")}`;
  }

  private columns(): { label: string; text: (point: Point) => string }[] {
    const quality = this.quality === null ? [] : [this.quality];
    const all = [[metricAt(this.page, P50)], [metricAt(this.page, P95)], quality, this.stalls];
    return all.flatMap((metrics) => {
      if (metrics.length === 0) return [];
      const { label, scale } = this.vertical(metrics, 0);
      const text = (point: Point) => {
        const value = this.value(point, metrics);
        return value === null ? "–" : `${plain(value / scale.factor, 3)} ${scale.unit}`;
      };
      return [{ label, text }];
    });
  }

  private table(facets: Facet[], found: Map<string, Mark>): HTMLElement {
    const columns = this.columns();
    const head = columns.map(({ label }) => h("th", { scope: "col" }, label));
    const rows = facets.flatMap(({ title, points }) => [
      title ? h("tr", {}, h("th", { colspan: columns.length + 1 }, title)) : null,
      ...points.map((point) => {
        const name = this.name(point);
        const mark = found.get(name);
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, mark && key(mark), ` ${name}`),
          ...columns.map(({ text }) => h("td", { class: "number" }, text(point))),
        );
      }),
    ]);
    return h(
      "table",
      { class: "small cells" },
      h("thead", {}, h("tr", {}, h("th", {}), ...head)),
      h("tbody", {}, ...rows),
    );
  }
}

/** A vertical axis from zero. */
interface Axis {
  /** What is drawn up: of a cell, the first of these that it has. */
  metrics: number[];
  height: number;
  top: number;
  label: string;
  scale: Scale;
}

function metricAt(page: Page, name: string): number {
  return page.metrics.findIndex((metric) => metric.name === name);
}

function mean(page: Page, point: { cell: number }, metric: number): number | null {
  return page.cells[point.cell]?.metrics[metric]?.mean ?? null;
}

/** The cells that have both latencies. */
function measured(page: Page): Point[] {
  const [first, second] = [metricAt(page, P50), metricAt(page, P95)];
  return page.cells.flatMap((_, cell) => {
    const [p50, p95] = [mean(page, { cell }, first), mean(page, { cell }, second)];
    return p50 === null || p95 === null || !(p50 > 0) ? [] : [{ cell, p50, p95 }];
  });
}

/** The axes that can choose the mark, the one with most labels first. With one axis, none is needed. */
function comparable(page: Page, points: Point[]): (number | null)[] {
  if (page.axes.length < 2) return [null];
  const labels = (axis: number) =>
    new Set(points.map(({ cell }) => page.cells[cell]?.values[axis]));
  return page.axes
    .map((_, axis) => ({ axis, n: labels(axis).size }))
    .filter(({ axis, n }) => n > 1 && split(page, points, axis).length <= FACETS)
    .sort((a, b) => b.n - a.n)
    .map(({ axis }) => axis);
}

function split(page: Page, points: Point[], axis: number | null): Facet[] {
  const facets = new Map<string, Point[]>();
  for (const point of points) {
    const values = page.cells[point.cell]?.values ?? [];
    const named = values.map((value, other) => `${page.axes[other]?.name} ${value}`);
    const title = axis === null ? "" : named.filter((_, other) => other !== axis).join(" · ");
    facets.set(title, [...(facets.get(title) ?? []), point]);
  }
  return [...facets].map(([title, points]) => ({ title, points }));
}

/** The metrics that any of the points has: first those that most have, then in the order of the names. */
function present(page: Page, points: Point[], names: string[]): number[] {
  const having = (metric: number) =>
    points.filter(({ cell }) => page.cells[cell]?.metrics[metric]).length;
  return names
    .map((name) => page.metrics.findIndex((metric) => metric.name === name))
    .filter((metric) => metric >= 0 && having(metric) > 0)
    .map((metric, order) => ({ metric, order, n: having(metric) }))
    .sort((a, b) => b.n - a.n || a.order - b.order)
    .map(({ metric }) => metric);
}

/** From the least to the greatest latency, with some room. */
function span(points: Point[]): [number, number] {
  const least = points.reduce((low, { p50 }) => Math.min(low, p50), Number.POSITIVE_INFINITY);
  const greatest = most(points.map(({ p50, p95 }) => Math.max(p50, p95)));
  return [least / 1.3, greatest * 1.3];
}

const RULE = "stroke:var(--rule);stroke-width:1";

/** The lines behind one plot of a chart, and its vertical axis. */
function frame(
  axis: Axis,
  top: number,
  x: (ms: number) => number,
  range: [number, number],
): SVGGElement {
  const group = s("g", { "font-size": 11, style: "fill:var(--muted)" });
  const bottom = top + axis.height;
  const right = WIDTH - MARGIN.right;
  const rows = ticks(0, axis.top / axis.scale.factor, axis.height / 36);
  for (const tick of rows) {
    const y = Math.round(top + axis.height * (1 - (tick * axis.scale.factor) / axis.top)) + 0.5;
    group.append(s("line", { x1: MARGIN.left, x2: right, y1: y, y2: y, style: RULE }));
    const place = { x: MARGIN.left - 6, y: y + 3.5, "text-anchor": "end" };
    group.append(s("text", place, tickText(tick, rows)));
  }
  for (const tick of decades(range)) {
    const place = Math.round(x(tick)) + 0.5;
    group.append(s("line", { x1: place, x2: place, y1: top, y2: bottom, style: RULE }));
  }
  const name = `${axis.label}${axis.scale.unit ? `, ${axis.scale.unit}` : ""}`;
  group.append(s("text", { x: MARGIN.left, y: top - 4 }, name));
  return group;
}

/** The axis of latency. */
function scale(bottom: number, x: (ms: number) => number, range: [number, number]): SVGGElement {
  const group = s("g", { "font-size": 11, style: "fill:var(--muted)" });
  for (const tick of decades(range)) {
    const text = tick < 1000 ? `${tick} ms` : `${tick / 1000} s`;
    group.append(s("text", { x: x(tick), y: bottom + 15, "text-anchor": "middle" }, text));
  }
  const line = { x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: bottom, y2: bottom };
  group.append(s("line", { ...line, style: "stroke:var(--axis);stroke-width:1" }));
  const name = { x: WIDTH - MARGIN.right, y: bottom + 27, "text-anchor": "end" };
  group.append(s("text", name, "latency, capture to display"));
  return group;
}

/** 1, 2 and 5 of each power of ten within a range; of a wide one, fewer. */
function decades([from, to]: [number, number]): number[] {
  const steps = to / from > 200 ? [1] : to / from > 40 ? [1, 3] : [1, 2, 5];
  const powers = [-1, 0, 1, 2, 3, 4, 5, 6].map((power) => 10 ** power);
  return powers
    .flatMap((power) => steps.map((step) => step * power))
    .filter((v) => v >= from && v <= to);
}
