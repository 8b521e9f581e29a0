// Cells and metrics. A few cells are columns, with a row per metric; many cells get a row each.

import { h, refocused } from "./dom";
import { margin, most, plain, type Scale, scaleFor, shown, whole } from "./format";
import type { Page, PageMetric, PageSpread } from "./generated/page";
import { best, LEAST } from "./rank";

/** Up to this many cells are shown side by side. */
const ABREAST = 6;
/** Rows at most; the maps show more cells. */
const ROWS = 200;

/** What the reader chose to see: a metric to sort by, and how. */
export interface State {
  all: boolean;
  sort: number | null;
  descending: boolean;
}

/** The section with the table. */
export function table(page: Page): HTMLElement {
  const state: State = { all: false, sort: null, descending: true };
  const box = h("div", { class: "scroll" });
  const more = h("button", { class: "screen" });
  const redraw = () => {
    refocused(box, () => box.replaceChildren(draw(page, state, redraw)));
    const all = measured(page).length;
    more.textContent = state.all ? "Main metrics only" : `All ${whole(all)} metrics`;
  };
  more.addEventListener("click", () => {
    state.all = !state.all;
    redraw();
  });
  redraw();
  const repeated = page.cells.some((cell) => cell.metrics.some((spread) => (spread?.n ?? 0) > 1));
  const note = repeated
    ? "Means over valid repetitions ± half the 95 % confidence interval (Student's t). "
    : "";
  return h(
    "section",
    { id: "cells", "aria-labelledby": "cells-title" },
    h("h2", { id: "cells-title" }, "Results"),
    h(
      "p",
      { class: "hint" },
      `${note}${page.cells.length > ROWS ? `The first ${ROWS} of ${whole(page.cells.length)} cells. ` : ""}${highlight(page)}Click a metric's name to sort by it; definitions are below the table.`,
    ),
    box,
    more,
    glossary(page),
  );
}

/** What is highlighted, or why nothing is. */
export function highlight(page: Page): string {
  if (page.cells.length < 2) return "";
  if (!page.comparable) return "No value is called the best: the cells' links differ. ";
  if (columnsOf(page, true).some((column) => column.best.size > 0))
    return "The best value of each metric is highlighted, with those whose intervals overlap with its own, unless all do. ";
  const counts = page.cells.flatMap((cell) => cell.metrics.flatMap((spread) => spread?.n ?? []));
  if (!counts.length) return "";
  if (counts.every((n) => n === 1))
    return "No value is called the best: one repetition, where small differences mean nothing. ";
  return counts.every((n) => n >= LEAST)
    ? "No value is called the best: the intervals overlap. "
    : `No value is called the best: that takes ${LEAST} valid repetitions of each cell. `;
}

interface Column {
  metric: PageMetric;
  index: number;
  scale: Scale;
  /** The cells with the best value: those that do not differ from it. Empty if none does. */
  best: Set<number>;
}

function draw(page: Page, state: State, redraw: () => void): HTMLTableElement {
  const columns = columnsOf(page, state.all);
  const order = sorted(page, state).slice(0, ROWS);
  const wide = page.cells.length > ABREAST;
  const sorter = (column: Column) => {
    const click = () => {
      state.descending = state.sort === column.index ? !state.descending : true;
      state.sort = column.index;
      redraw();
    };
    const arrow = state.sort === column.index ? (state.descending ? " ↓" : " ↑") : "";
    const { metric, scale } = column;
    const title = `${metric.name}: ${metric.doc}`;
    return h(
      "button",
      { class: "sort", click, title, "data-focus": `sort ${column.index}` },
      metric.label,
      wide ? h("small", {}, ` ${scale.unit}`) : null,
      arrow,
    );
  };
  const direction = (column: Column) => {
    if (state.sort !== column.index) return null;
    return state.descending ? "descending" : "ascending";
  };
  if (wide) {
    const head = columns.map((column) =>
      h("th", { scope: "col", "aria-sort": direction(column) }, sorter(column)),
    );
    const rows = order.map((cell) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, ...cellName(page, cell)),
        ...columns.map((c) => value(page, cell, c)),
      ),
    );
    return h(
      "table",
      { class: "cells" },
      h("thead", {}, h("tr", {}, h("th", {}), ...head)),
      h("tbody", {}, ...rows),
    );
  }
  const head = order.map((cell) => h("th", { scope: "col" }, ...cellName(page, cell)));
  const rows = columns.map((column) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, sorter(column)),
      h("td", { class: "unit" }, column.scale.unit),
      ...order.map((cell) => value(page, cell, column)),
    ),
  );
  return h(
    "table",
    { class: "cells abreast" },
    h("thead", {}, h("tr", {}, h("th", {}), h("th", {}), ...head)),
    h("tbody", {}, ...rows),
  );
}

function columnsOf(page: Page, all: boolean): Column[] {
  return measured(page).flatMap(({ metric, index, means }) => {
    if (!(all || metric.main)) return [];
    const scale = scaleFor(metric.unit, most(means.map(Math.abs)));
    return [{ metric, index, scale, best: bestCells(page, index, scale) }];
  });
}

/** The metrics of which some cell has a value, with their means. */
function measured(page: Page): { metric: PageMetric; index: number; means: number[] }[] {
  return page.metrics.flatMap((metric, index) => {
    const means = page.cells.flatMap((cell) => cell.metrics[index]?.mean ?? []);
    return means.length ? [{ metric, index, means }] : [];
  });
}

/** The cells with the best value; empty if the cells' links differ. */
function bestCells(page: Page, index: number, scale: Scale): Set<number> {
  const metric = page.metrics[index];
  const spreads = page.cells.map((cell) => cell.metrics[index] ?? null);
  return page.comparable && metric ? best(metric, spreads, scale) : new Set();
}

/** The cells in the order of the chosen metric; those that did not measure it are the last in both directions. */
export function sorted(page: Page, state: State): number[] {
  const order = page.cells.map((_, index) => index);
  const { sort } = state;
  if (sort === null) return order;
  const key = (cell: number) => page.cells[cell]?.metrics[sort]?.mean ?? null;
  const sign = state.descending ? -1 : 1;
  return order.sort((a, b) => {
    const [one, other] = [key(a), key(b)];
    if (one === null || other === null)
      return Number(one === null) - Number(other === null) || a - b;
    return sign * (one - other) || a - b;
  });
}

function cellName(page: Page, index: number): (Node | string | null)[] {
  const cell = page.cells[index];
  if (!cell) return [];
  const valid = cell.trials.filter((trial) => page.trials[trial]?.valid).length;
  const all = cell.trials.length;
  return [
    cell.label,
    valid < all ? h("small", { class: "bad" }, ` ${whole(valid)} of ${whole(all)} valid`) : null,
  ];
}

function value(page: Page, cell: number, column: Column): HTMLTableCellElement {
  const spread: PageSpread | null = page.cells[cell]?.metrics[column.index] ?? null;
  if (!spread) return h("td", { class: "number none", title: "not measured" }, "–");
  const { scale, metric } = column;
  const text = shown(spread.mean, scale, metric.digits);
  const half =
    spread.ci95 === null
      ? null
      : h("small", {}, ` ± ${margin(spread.ci95, spread.mean, scale, metric.digits)}`);
  const of =
    spread.n > 1
      ? `mean of ${spread.n}, standard deviation ${plain((spread.sd ?? 0) / scale.factor, 3)} ${scale.unit}`
      : null;
  const isBest = column.best.has(cell);
  return h(
    "td",
    { class: isBest ? "number best" : "number", title: of },
    h("span", {}, text),
    half,
  );
}

/** What each metric means, for those who cannot hover. */
function glossary(page: Page): HTMLElement {
  const entries = measured(page).flatMap(({ metric }) => [
    h("dt", {}, metric.label, " ", h("code", {}, metric.name)),
    h("dd", {}, metric.doc),
  ]);
  return h(
    "details",
    { class: "glossary" },
    h("summary", {}, "What the metrics mean"),
    h("dl", {}, ...entries),
  );
}
