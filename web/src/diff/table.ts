// The metrics of each cell that two folders have: verdict, both means, the difference and its interval.

import { h, s } from "../dom";
import { plain, type Scale, scaleFor, shown } from "../format";
import type {
  ComparedCell,
  Comparison,
  Difference,
  DiffVerdict,
  MetricDiff,
  PageMetric,
} from "../generated/diff";
import { letter, look } from "./letter";

type Row = { metric: PageMetric; found: MetricDiff };
type Kept = "changed" | "main" | "all";

/** Verdicts in the order of a table, each with its words. */
const ORDER: [DiffVerdict | null, string][] = [
  ["worse", "worse"],
  ["better", "better"],
  ["higher", "higher"],
  ["lower", "lower"],
  ["too_noisy", "too noisy"],
  ["same", "same"],
  [null, ""],
];
/** Causes shown of a cell. */
const CAUSES = 8;

/** A part for each cell. */
export function cells(all: Difference, comparison: Comparison): HTMLElement[] {
  if (!comparison.cells.length)
    return [h("p", {}, "No cell of one folder matches one of the other.")];
  return comparison.cells.map((cell) => part(all, comparison, cell));
}

function part(all: Difference, comparison: Comparison, cell: ComparedCell): HTMLElement {
  const rows = all.metrics.flatMap((metric): Row[] => {
    const found = cell.diff.metrics[metric.name];
    const measured = found && (found.first !== null || found.second !== null);
    return measured ? [{ metric, found }] : [];
  });
  const place = ({ found }: Row) => ORDER.findIndex(([verdict]) => verdict === found.verdict);
  // Main metrics first: of the others there are many, and each main one has some that follow it.
  rows.sort((a, b) => Number(b.metric.main) - Number(a.metric.main) || place(a) - place(b));
  const box = h("div", { class: "scroll" });
  const draw = (kept: Kept) => box.replaceChildren(table(all, comparison, rows.filter(fits(kept))));
  const choice = h(
    "select",
    { "aria-label": "metrics shown" },
    h("option", { value: "changed" }, "what changed"),
    h("option", { value: "main" }, "main metrics"),
    h("option", { value: "all" }, `all ${rows.length} metrics`),
  );
  choice.addEventListener("change", () => draw(choice.value as Kept));
  draw("changed");
  const trials =
    cell.diff.pairs === null
      ? `${cell.diff.first_valid} and ${cell.diff.second_valid} valid trials, not paired: their seeds differ`
      : `${cell.diff.pairs} ${cell.diff.pairs === 1 ? "pair" : "pairs"} of trials with the same seed`;
  return h(
    "div",
    { class: "compared-cell" },
    h("h3", {}, cell.label, " ", h("small", {}, trials), " ", choice),
    box,
    causes(all, comparison, cell),
  );
}

function fits(kept: Kept): (row: Row) => boolean {
  return ({ metric, found }) => {
    if (kept === "all") return true;
    if (kept === "main") return metric.main;
    if (found.verdict === "worse" || found.verdict === "better") return true;
    // Descriptive metrics, what one side alone or no pair measured, and what has too few repetitions for a verdict.
    const few = found.verdict === "too_noisy" && found.q === null;
    const changed = few || [null, "higher", "lower"].includes(found.verdict ?? null);
    return metric.main && changed;
  };
}

function table(all: Difference, comparison: Comparison, rows: Row[]): HTMLElement {
  if (!rows.length) return h("p", { class: "hint" }, "No metric is known to have changed.");
  const head = h(
    "tr",
    {},
    h("th", {}),
    h("th", {}, "Metric"),
    h("th", { class: "number" }, letter(all, 0)),
    h("th", { class: "number" }, letter(all, comparison.folder)),
    h("th", {}),
    h("th", { class: "number" }, "Difference"),
    h("th", {}, "95 % interval"),
    h("th", { title: "relative to the first mean; the line is no difference" }, "Change"),
  );
  // All rows have one scale, so that the bars can be compared.
  const reach = Math.min(1, Math.max(0.02, ...rows.map(({ found }) => widest(found))));
  const body = rows.map((row) => line(row, reach));
  return h("table", { class: "small diff" }, h("thead", {}, head), h("tbody", {}, ...body));
}

function line({ metric, found }: Row, reach: number): HTMLElement {
  const most = Math.max(Math.abs(found.first ?? 0), Math.abs(found.second ?? 0));
  const scale = scaleFor(metric.unit, most);
  const side = (value: number | null, n: number) =>
    h(
      "td",
      { class: "number", title: value === null ? "not measured" : `mean of ${n}` },
      value === null ? "–" : shown(value, scale, metric.digits),
    );
  const words = ORDER.find(([verdict]) => verdict === found.verdict)?.[1] || unjudged(found);
  const colour = { worse: "bad", better: "good" }[found.verdict as string] ?? "told";
  return h(
    "tr",
    {},
    h("td", { class: colour, title: words === NO_PAIR ? NO_PAIR_DOC : null }, words),
    h("th", { scope: "row", title: `${metric.name}: ${metric.doc}` }, metric.label),
    side(found.first, found.first_n),
    side(found.second, found.second_n),
    h("td", { class: "unit" }, scale.unit),
    h("td", { class: "number" }, signed(found.difference, scale, metric.digits)),
    h("td", {}, interval(found, scale)),
    h("td", {}, bar(found, reach)),
  );
}

const NO_PAIR = "no pair";
const NO_PAIR_DOC = "both measured it, but in no two valid trials with the same seed";

/** Why a metric has no verdict. */
function unjudged({ first, second }: MetricDiff): string {
  return first !== null && second !== null ? NO_PAIR : "one side only";
}

function signed(value: number | null, scale: Scale, digits: number): string {
  if (value === null) return "";
  if (value === 0) return "0";
  const text = plain(Math.abs(value) / scale.factor, digits);
  return `${value < 0 ? "−" : "+"}${text}`;
}

function interval({ low, high }: MetricDiff, scale: Scale): string {
  if (low === null || high === null || low === high) return "";
  return `${signed(low, scale, 3)} to ${signed(high, scale, 3)}`;
}

/** The farthest end of an interval from no difference, in shares of the first mean. */
function widest({ first, difference, low, high }: MetricDiff): number {
  if (!first || difference === null) return 0;
  return Math.max(...[difference, low ?? 0, high ?? 0].map((it) => Math.abs(it / first)));
}

const WIDTH = 150;
const HEIGHT = 14;

/** The difference and its interval, in shares of the first mean; cut off where they exceed the bar. */
function bar(found: MetricDiff, reach: number): SVGSVGElement | null {
  const { first, difference, low, high, verdict } = found;
  if (!first || difference === null) return null;
  const x = (value: number) => {
    const share = value / Math.abs(first) / reach;
    return WIDTH / 2 + Math.max(-1, Math.min(1, share)) * (WIDTH / 2 - 4);
  };
  const stroke =
    { worse: "var(--bad)", better: "var(--good)" }[verdict as string] ?? "var(--muted)";
  const [middle, y] = [WIDTH / 2, HEIGHT / 2];
  const percent = Number(((difference / Math.abs(first)) * 100).toPrecision(3));
  const label = `${percent > 0 ? "+" : ""}${percent} %`;
  return s(
    "svg",
    { width: WIDTH, height: HEIGHT, role: "img", "aria-label": label },
    s("title", {}, label),
    s("line", { x1: middle, x2: middle, y1: 0, y2: HEIGHT, style: "stroke:var(--axis)" }),
    s("line", {
      x1: x(low ?? difference),
      x2: x(high ?? difference),
      y1: y,
      y2: y,
      style: `stroke:${stroke};stroke-width:3;stroke-opacity:.45`,
    }),
    s("circle", { cx: x(difference), cy: y, r: 3.2, style: `fill:${stroke}` }),
  );
}

/** The causes whose shares differ, as bars. */
function causes(all: Difference, comparison: Comparison, cell: ComparedCell): HTMLElement | null {
  const rows = cell.causes.slice(0, CAUSES).flatMap((name) => {
    const metric = all.metrics.find((it) => it.name === name);
    const found = cell.diff.metrics[name];
    if (!metric || !found) return [];
    const sides: [number, number | null][] = [
      [0, found.first],
      [comparison.folder, found.second],
    ];
    const bars = sides.map(([folder, value]) =>
      h("span", {
        class: "share",
        style: `width:${((value ?? 0) * 100).toFixed(1)}%;background:${look(folder).colour}`,
      }),
    );
    const text = sides.map(([, value]) => (value === null ? "–" : `${plain(value * 100, 2)} %`));
    return [
      h(
        "tr",
        {},
        h("th", { scope: "row", title: metric.doc }, metric.label),
        h("td", { class: "number" }, text[0] ?? ""),
        h("td", { class: "number" }, text[1] ?? ""),
        h("td", { class: "shares" }, ...bars),
      ),
    ];
  });
  if (!rows.length) return null;
  return h(
    "div",
    {},
    h("h4", {}, "Causes whose share of the time changed"),
    h("div", { class: "scroll" }, h("table", { class: "small" }, h("tbody", {}, ...rows))),
  );
}
