// One figure as SVG. Ours, because a figure must print crisply, follow the theme by CSS variables and
// be saved as SVG; the good small libraries draw on a canvas.

import { s } from "./dom";
import { type Scale, scaleFor, ticks, tickText } from "./format";
import type { Style } from "./generated/page";

/** A series to draw. */
export interface Line {
  /** Legend text, for the readout. */
  label: string;
  /** What it is of its cell, where the figure shows several series of each. */
  series?: string;
  colour: string;
  dash: string;
  style: Style;
  /** Drawn faintly: one of several repetitions, or a trial that is not valid. */
  faint: boolean;
  /** In pixels, where it is not that of its style. */
  width?: number;
  bin_s: number;
  values: (number | null)[];
}

/** What lies between two values in each bin, to fill. */
export interface Envelope {
  bin_s: number;
  low: (number | null)[];
  high: (number | null)[];
}

/** A stretch of time to shade. */
export interface Band {
  colour: string;
  from: number;
  to: number;
  /** Which of several cells it belongs to: bands of different cells bear marks at different heights. */
  lane: number;
  /** Only the mark, no shade: with many cells shades would hide the lines. */
  faint: boolean;
}

/** What to draw. */
export interface Spec {
  unit: string;
  lines: Line[];
  bands: Band[];
  /** Filled in grey behind the lines. */
  envelopes?: Envelope[];
  /** Until when it is shaded grey, in seconds. */
  warm_up_s?: number;
  /** The stretch of time shown, in seconds. */
  x: [number, number];
  width: number;
  height: number;
  /** True if the vertical axis need not begin at zero. */
  floating: boolean;
}

/** A drawn figure, and how its pixels map to values. */
export interface Chart {
  group: SVGGElement;
  scale: Scale;
  /** The plot's inside, in pixels. */
  left: number;
  right: number;
  top: number;
  bottom: number;
  px: (t: number) => number;
  py: (value: number) => number;
  time: (px: number) => number;
}

const MARGIN = { left: 54, right: 14, top: 18, bottom: 22 };
let clips = 0;

/** Draws a figure into a group of its own. */
export function draw(spec: Spec): Chart {
  const [from, to] = spec.x;
  const left = MARGIN.left;
  const right = Math.max(left + 10, spec.width - MARGIN.right);
  const top = MARGIN.top;
  const bottom = spec.height - MARGIN.bottom;
  const [low, high] = domain(spec);
  const scale = scaleFor(spec.unit, high);
  const px = (t: number) => left + ((t - from) / (to - from || 1)) * (right - left);
  const py = (value: number) => bottom - ((value - low) / (high - low || 1)) * (bottom - top);
  const time = (x: number) => from + ((x - left) / (right - left)) * (to - from);
  const group = s("g", {});
  const chart: Chart = { group, scale, left, right, top, bottom, px, py, time };
  const [plot, column] = [`plot${clips}`, `column${clips++}`];
  const box = { x: left, y: top - 2, width: right - left, height: bottom - top + 4 };
  const tall = { ...box, y: 0, height: spec.height };
  group.append(
    s(
      "defs",
      {},
      s("clipPath", { id: plot }, s("rect", box)),
      s("clipPath", { id: column }, s("rect", tall)),
    ),
  );
  group.append(grid(spec, chart, low, high));
  const behind = s("g", { "clip-path": `url(#${column})` });
  if (spec.warm_up_s) behind.append(warmUp(spec.warm_up_s, chart));
  const lanes = Math.max(0, ...spec.bands.map((band) => band.lane)) + 1;
  for (const band of spec.bands) behind.append(...shade(band, chart, lanes));
  const inside = s("g", { "clip-path": `url(#${plot})` });
  for (const envelope of spec.envelopes ?? []) {
    const style = "fill:var(--muted);fill-opacity:.25";
    inside.append(s("path", { d: outline(envelope, chart), style, class: "envelope" }));
  }
  for (const line of [...spec.lines].sort((a, b) => depth(a) - depth(b))) {
    inside.append(trace(line, chart, spec));
  }
  group.append(behind, inside);
  return chart;
}

/** What lies behind is drawn first. */
function depth(line: Line): number {
  return { bound: 0, context: 1, bar: 2, step: 3, line: 3 }[line.style];
}

/** The first bin in a stretch of time, and the one after the last. */
function inSight(
  { bin_s, values }: Pick<Line, "bin_s" | "values">,
  [from, to]: [number, number],
): [number, number] {
  return [Math.max(0, Math.floor(from / bin_s)), Math.min(values.length, Math.ceil(to / bin_s))];
}

/** The least and greatest value of the vertical axis, from what is in sight. */
export function domain(spec: Spec): [number, number] {
  let least = Number.POSITIVE_INFINITY;
  let most = 0;
  let beside = 0;
  for (const line of spec.lines) {
    const [first, last] = inSight(line, spec.x);
    for (let bin = first; bin < last; bin++) {
      const value = line.values[bin];
      if (value === null || value === undefined) continue;
      if (line.style === "bound" || line.style === "context") beside = Math.max(beside, value);
      else {
        most = Math.max(most, value);
        least = Math.min(least, value);
      }
    }
  }
  for (const { bin_s, high } of spec.envelopes ?? []) {
    const sight = inSight({ bin_s, values: high }, spec.x);
    for (const value of high.slice(...sight)) most = Math.max(most, value ?? 0);
  }
  // A bound, or context, far above the other lines would flatten them.
  if (most <= 0 || beside <= 3 * most) most = Math.max(most, beside);
  if (spec.floating && least < 0) {
    const room = (most - least) * 0.06;
    return [least - room, most + room];
  }
  if (most <= 0) return [0, 1];
  const low = spec.floating && least > 0.5 * most ? least - (most - least || most) * 0.1 : 0;
  return [low, most + (most - low) * 0.06];
}

function grid(spec: Spec, chart: Chart, low: number, high: number): SVGGElement {
  const { left, right, bottom, scale, px, py } = chart;
  const group = s("g", { "font-size": 11, style: "fill:var(--muted)" });
  const line = "stroke:var(--rule);stroke-width:1";
  const rungs = steps(spec, chart);
  const ys = rungs ?? ticks(low / scale.factor, high / scale.factor, spec.height > 130 ? 4 : 3);
  for (const tick of ys) {
    const y = Math.round(py(tick * scale.factor)) + 0.5;
    group.append(s("line", { x1: left, x2: right, y1: y, y2: y, style: line }));
    const text = rungs ? String(Number(tick.toPrecision(3))) : tickText(tick, ys);
    group.append(s("text", { x: left - 8, y: y + 3.5, "text-anchor": "end" }, text));
  }
  const xs = ticks(spec.x[0], spec.x[1], Math.max(3, Math.min(12, (right - left) / 80)));
  for (const tick of xs) {
    const x = Math.round(px(tick)) + 0.5;
    group.append(s("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, style: line }));
    if (x > right - 18) continue;
    group.append(s("text", { x, y: bottom + 16, "text-anchor": "middle" }, tickText(tick, xs)));
  }
  group.append(s("text", { x: right, y: bottom + 16, "text-anchor": "end" }, "s"));
  // A long name has no room on the left of the axis.
  const long = scale.unit.length > 7;
  const place = long ? { x: 0, "text-anchor": "start" } : { x: left - 8, "text-anchor": "end" };
  if (scale.unit) group.append(s("text", { ...place, y: 9 }, scale.unit));
  const axis = "stroke:var(--axis);stroke-width:1";
  const y = Math.round(bottom) + 0.5;
  group.append(s("line", { x1: left, x2: right, y1: y, y2: y, style: axis }));
  return group;
}

/** Pixels between the texts of two ticks. */
const APART = 13;
/** Pixels above the uppermost step from which on the axis gets a tick there. */
const FAR = 30;

/**
 * The values between which the lines in sight step, if they are few, as ticks. Of those that are too near to each other
 * the one that was shown longest is kept. Where another line rises far above them, the axis has a tick near its top.
 */
export function steps(spec: Spec, chart: Pick<Chart, "py" | "scale">): number[] | null {
  const main = spec.lines.filter((line) => line.style !== "context" && line.style !== "bound");
  if (!main.length || main.some((line) => line.style !== "step")) return null;
  const shown = new Map<number, number>();
  const [low, high] = domain(spec);
  for (const line of main)
    for (const value of line.values.slice(...inSight(line, spec.x)))
      if (value !== null && value >= low && value <= high)
        shown.set(value, (shown.get(value) ?? 0) + line.bin_s);
  if (shown.size < 1 || shown.size > 8) return null;
  const longest = [...shown].sort(([a, s], [b, t]) => t - s || b - a);
  const kept: number[] = [];
  const isFree = (value: number, room: number) =>
    kept.every((other) => Math.abs(chart.py(value) - chart.py(other)) >= room);
  for (const [value] of longest) if (isFree(value, APART)) kept.push(value);
  const { factor } = chart.scale;
  const above = (ticks(0, high / factor, 4).at(-1) ?? 0) * factor;
  if (above > Math.max(...kept) && isFree(above, FAR)) kept.push(above);
  return kept.sort((a, b) => b - a).map((value) => value / factor);
}

/** A shade over the warm-up. */
function warmUp(until: number, { px, top, bottom }: Chart): SVGRectElement {
  const size = { x: px(0), width: px(until) - px(0), y: top, height: bottom - top };
  return s("rect", { ...size, "data-warm-up": until, style: "fill:var(--muted);fill-opacity:.13" });
}

/** A shade over the plot, and a mark above it in the cell's own lane. */
function shade(band: Band, chart: Chart, lanes: number): SVGRectElement[] {
  const x = chart.px(band.from);
  const width = Math.max(1, chart.px(band.to) - x);
  const { top, bottom } = chart;
  const fill = `fill:${band.colour}`;
  const pitch = Math.min(4, (top - 2) / lanes);
  const mark = { x, width, y: top - (band.lane + 1) * pitch, height: pitch * 0.75, style: fill };
  const whole = { x, width, y: top, height: bottom - top, style: `${fill};fill-opacity:.13` };
  return band.faint ? [s("rect", mark)] : [s("rect", whole), s("rect", mark)];
}

function trace(line: Line, chart: Chart, spec: Spec): SVGPathElement {
  const opacity = line.faint ? 0.35 : 1;
  const bar = barOf(line, spec.lines, chart);
  const usual = { line: 1.6, step: 1.9, context: 1.3, bound: 5, bar: bar.width }[line.style];
  const width = line.width ?? usual;
  const style =
    line.style === "bound"
      ? `stroke:var(--bound);stroke-width:${width};stroke-opacity:.4`
      : `stroke:${line.colour};stroke-width:${width};stroke-opacity:${opacity * (line.style === "context" ? 0.8 : 1)}`;
  const dash = line.style === "bar" || line.style === "bound" ? "" : line.dash;
  return s("path", {
    d: path(line, chart, spec.x, bar.shift),
    style: `fill:none;stroke-linejoin:round;${style}`,
    "stroke-dasharray": (line.style === "context" ? "1 2.5" : dash) || null,
    class: `trace ${line.style}`,
  });
}

/** How wide a bar is, and how far from the middle of its bin, in pixels: bars of different looks stand next to each other. */
export function barOf(
  line: Line,
  all: Line[],
  chart: Pick<Chart, "px">,
): { width: number; shift: number } {
  const look = ({ colour, dash }: Line) => `${colour} ${dash}`;
  const looks = [...new Set(all.filter(({ style }) => style === "bar").map(look))];
  const pixels = chart.px(line.bin_s) - chart.px(0);
  const width = Math.max(1.2, Math.min(6, (pixels * 0.8) / Math.max(1, looks.length)));
  return { width, shift: (looks.indexOf(look(line)) - (looks.length - 1) / 2) * width };
}

/** The path of the bins in sight, its bars shifted by some pixels; a gap where nothing was measured. */
export function path(
  line: Line,
  chart: Pick<Chart, "px" | "py" | "bottom">,
  [from, to]: [number, number],
  shift: number,
): string {
  const { bin_s, values } = line;
  const stepped = line.style === "step" || line.style === "bound";
  const first = Math.max(0, Math.floor(from / bin_s) - 1);
  const last = Math.min(values.length, Math.ceil(to / bin_s) + 1);
  const x = (t: number) => chart.px(t).toFixed(1);
  let text = "";
  let drawn = false;
  for (let bin = first; bin < last; bin++) {
    const value = values[bin];
    if (value === null || value === undefined) {
      drawn = false;
      continue;
    }
    const y = chart.py(value).toFixed(1);
    if (line.style === "bar") {
      const middle = (chart.px((bin + 0.5) * bin_s) + shift).toFixed(1);
      if (value > 0) text += `M${middle} ${chart.bottom}V${y}`;
    } else if (stepped) {
      text += drawn
        ? `V${y}H${x((bin + 1) * bin_s)}`
        : `M${x(bin * bin_s)} ${y}H${x((bin + 1) * bin_s)}`;
    } else if (drawn) {
      text += `L${x((bin + 0.5) * bin_s)} ${y}`;
    } else {
      const alone = (values[bin + 1] ?? null) === null;
      text += alone
        ? `M${x(bin * bin_s)} ${y}H${x((bin + 1) * bin_s)}`
        : `M${x((bin + 0.5) * bin_s)} ${y}`;
    }
    drawn = true;
  }
  return text;
}

/** A closed path around each stretch of bins that have both values; around one alone, it is as wide as the bin. */
export function outline(
  { bin_s, low, high }: Envelope,
  { px, py }: Pick<Chart, "px" | "py">,
): string {
  const range = (bin: number): [number, number] | null => {
    const [least, most] = [low[bin] ?? null, high[bin] ?? null];
    return least !== null && most !== null ? [least, most] : null;
  };
  let text = "";
  let [above, below]: [string[], string[]] = [[], []];
  for (let bin = 0; bin <= high.length; bin++) {
    const here = range(bin);
    if (here !== null) {
      const [least, most] = here;
      const isAlone = !above.length && range(bin + 1) === null;
      for (const at of isAlone ? [bin, bin + 1] : [bin + 0.5]) {
        const x = px(at * bin_s).toFixed(1);
        above.push(`${x} ${py(most).toFixed(1)}`);
        below.push(`${x} ${py(least).toFixed(1)}`);
      }
    } else if (above.length) {
      text += `M${[...above, ...below.reverse()].join("L")}Z`;
      [above, below] = [[], []];
    }
  }
  return text;
}

/** The value of a line at a time; null where nothing was measured. */
export function valueAt(line: Line, t: number): number | null {
  return line.values[Math.floor(t / line.bin_s)] ?? null;
}
