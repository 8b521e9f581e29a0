// A study's published findings, tables and figures, compared with what this run measured.

import { type Band, type Chart, draw, type Line, type Spec } from "./chart";
import { lookOf } from "./data";
import { h, s } from "./dom";
import { type Key, save, standalone } from "./export";
import { mark, tell } from "./figures";
import { count, plain, whole } from "./format";
import type {
  ComparedEntry,
  ComparedTable,
  Finding,
  Page,
  PageFigure,
  PageStudy,
} from "./generated/page";
import { sample } from "./legend";

/** The section of the study; null if the scenario repeats none. */
export function study(page: Page): HTMLElement | null {
  const published = page.published;
  if (!published) return null;
  return h(
    "section",
    { id: "study", "aria-labelledby": "study-title" },
    h("h2", { id: "study-title" }, `Study ${published.id}: as published, and as measured here`),
    h("p", {}, h("strong", {}, published.title), `. ${published.source}.`),
    findings(page.findings),
    tables(published),
    published.figures.length ? figures(page, published) : null,
  );
}

const VERDICTS = {
  holds: { mark: "✓", look: "good" },
  inconclusive: { mark: "≈", look: "open" },
  "does not hold": { mark: "✗", look: "bad" },
  "not judged": { mark: "–", look: "open" },
};

/** How many findings hold, in words. */
export function verdicts(all: Finding[]): string {
  const judged = (verdict: Finding["verdict"]) =>
    all.filter((finding) => finding.verdict === verdict).length;
  const [hold, fail, unsure, open] = [
    judged("holds"),
    judged("does not hold"),
    judged("inconclusive"),
    judged(null),
  ];
  const others = [
    fail ? `, ${fail} not` : "",
    unsure ? `, ${unsure} inconclusive` : "",
    open ? `, ${open} not judged` : "",
  ].join("");
  return `${hold} of ${all.length} findings hold${others}`;
}

function findings(all: Finding[]): HTMLElement {
  const item = (finding: Finding) => {
    const text = finding.verdict ?? "not judged";
    const { mark, look } = VERDICTS[text];
    const facts: [string, string | null][] = [
      ["Published", finding.published],
      ["Measured", finding.measured],
      [finding.verdict === null ? "Why not" : "Verdict", finding.because],
    ];
    const list = facts.flatMap(([name, value]) =>
      value ? [h("dt", {}, name), h("dd", {}, ...phrases(value))] : [],
    );
    return h(
      "li",
      { class: "finding" },
      h(
        "p",
        { class: "claim" },
        h("span", { class: `badge ${look}` }, h("b", { "aria-hidden": "true" }, mark), ` ${text}`),
        h("span", { class: "id" }, finding.id),
        h("span", {}, finding.claim),
      ),
      h("dl", { class: "facts" }, ...list),
      h(
        "details",
        {},
        h("summary", {}, "How this is judged"),
        h("pre", {}, finding.formula),
        finding.note ? h("p", { class: "hint" }, finding.note) : null,
      ),
    );
  };
  const open = all.filter((finding) => finding.verdict === null);
  // Those that the run could not show, such as a short one, take one line.
  const rest =
    open.length > 0 &&
    h(
      "details",
      { class: "unjudged" },
      h("summary", {}, `Not judged: ${open.map((finding) => finding.id).join(", ")}`),
      h("ul", { class: "findings" }, ...open.map(item)),
    );
  const judged = all.filter((finding) => finding.verdict !== null);
  return h(
    "div",
    {},
    h("h3", {}, verdicts(all)),
    judged.length > 0 && h("ul", { class: "findings" }, ...judged.map(item)),
    rest,
  );
}

/** A list of figures in words breaks between its entries only. */
function phrases(text: string): (Node | string)[] {
  const parts = text.split("; ");
  return parts.flatMap((part, index) => {
    const whole = part.length < 60 && parts.length > 1;
    const ending = index < parts.length - 1 ? "; " : "";
    return [whole ? h("span", { class: "phrase" }, part) : part, ending];
  });
}

function tables(published: PageStudy): HTMLElement {
  const notes = published.notes ? h("p", { class: "hint" }, published.notes) : null;
  const all = published.tables.map((table) => {
    const [near, measured] = table.near;
    const [ordered, pairs] = table.ordered;
    const unit = units(table);
    return h(
      "div",
      { class: "published" },
      h("h4", {}, `Table ${table.id}: ${table.title}${unit ? `, ${unit}` : ""}`),
      h(
        "p",
        { class: "hint" },
        `Measured values, with the published ones below them. ${whole(near)} of ${whole(measured)} agree within a factor of ${table.tolerance} (✓); ` +
          `${whole(ordered)} of ${count(pairs, "pair")} of values are in the published order.`,
      ),
      h("div", { class: "scroll" }, grid(table, unit)),
      ...missingReasons(table).map((text) => h("p", { class: "hint" }, `–  ${text}.`)),
      table.note ? h("p", { class: "hint" }, table.note) : null,
    );
  });
  return h(
    "div",
    { class: "tables" },
    h("h3", {}, "Tables"),
    notes,
    h("div", { class: "pair" }, ...all),
  );
}

/** Why numbers are missing, each reason once. */
function missingReasons(table: ComparedTable): string[] {
  const reasons = table.rows.flatMap((row) => row.entries.flatMap((entry) => entry.because ?? []));
  return [...new Set(reasons)];
}

/** The unit that all numbers of a table share; null if there are several. */
function units(table: ComparedTable): string | null {
  const found = new Set(table.rows.flatMap((row) => row.entries.map((entry) => entry.unit)));
  return found.size === 1 ? ([...found][0] ?? null) : null;
}

function grid(table: ComparedTable, unit: string | null): HTMLTableElement {
  const head = table.columns.map((title) => h("th", { scope: "col" }, title));
  const rows = table.rows.map((row) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, row.title),
      ...row.entries.map((entry) => place(entry, unit === null)),
    ),
  );
  return h(
    "table",
    { class: "compared" },
    h("thead", {}, h("tr", {}, h("td", {}), ...head)),
    h("tbody", {}, ...rows),
  );
}

function place(entry: ComparedEntry, withUnit: boolean): HTMLTableCellElement {
  const unit = withUnit && entry.unit ? ` ${entry.unit}` : "";
  const below = h("small", {}, `${entry.published}${unit}`);
  if (entry.measured === null)
    return h("td", { class: "none", title: entry.because }, h("span", {}, "–"), below);
  const look = entry.near ? "good" : "bad";
  const told = entry.near ? "within the tolerance" : "not within the tolerance";
  const ratio = entry.ratio === null ? "" : `×${plain(entry.ratio, 3)} `;
  return h(
    "td",
    { class: look },
    h("span", {}, plain(entry.measured, 3), unit),
    below,
    h(
      "small",
      { class: "ratio" },
      ratio,
      h("b", { role: "img", "aria-label": told }, entry.near ? "✓" : "✗"),
    ),
  );
}

function figures(page: Page, published: PageStudy): HTMLElement {
  const drawn = new Set(published.figures.map((figure) => figure.drawn));
  const which = drawn.size === 1 ? `The lines show ${[...drawn][0]}. ` : "";
  return h(
    "div",
    {},
    h("h3", {}, "Figures"),
    h(
      "p",
      { class: "hint" },
      which,
      published.figures.some((figure) => figure.bands.length)
        ? "The study comments on the shaded periods; its comments are below each figure."
        : "",
    ),
    h("div", { class: "pair" }, ...published.figures.map((one) => figure(page, one))),
  );
}

const HEIGHT = 190;

/** One figure in the study's arrangement. */
function figure(page: Page, of: PageFigure): HTMLElement {
  const { keys, lines, missing } = linesOf(page, of);
  const bands: Band[] = of.bands.map(({ from, to }) => {
    return { colour: "var(--bound)", from, to, lane: 0, faint: false };
  });
  const title = `Figure ${of.id}: ${of.title}`;
  const legend = keys.map((key) => h("span", { class: "key" }, sample(key), key.label));
  const remarks = [...new Set(of.bands.map((band) => band.text))];
  // A shorter run still fills the width.
  const recorded = Math.max(0, ...lines.map((line) => line.values.length * line.bin_s));
  const ends = recorded > 0 ? Math.min(of.seconds, recorded) : of.seconds;
  const spec = (width: number): Spec => {
    return {
      unit: of.unit,
      lines,
      bands,
      x: [0, ends],
      width,
      height: HEIGHT,
      floating: false,
    };
  };
  const click = () => {
    const saved = { title, note: remarks.join(" · "), spec: spec(900) };
    save(`${page.scenario}-figure-${of.id}.svg`, standalone(page.title, keys, [saved]));
  };
  const readout = h("output", { class: "readout" });
  return h(
    "figure",
    { "data-figure": of.id },
    h(
      "figcaption",
      {},
      h("strong", {}, title),
      readout,
      h("button", { class: "save screen", title: `Save figure ${of.id} as SVG`, click }, "SVG"),
    ),
    h("div", { class: "legend plain" }, ...legend),
    lines.length
      ? plot(`${of.title} over time`, spec, readout)
      : h("p", {}, "Nothing was recorded."),
    of.mean_over_s ? h("p", { class: "hint" }, `Means over ${of.mean_over_s} s.`) : null,
    ...remarks.map((text) => h("p", { class: "hint" }, `Shaded: ${text}.`)),
    missing.length ? h("p", { class: "hint" }, `Not drawn: ${missing.join("; ")}.`) : null,
  );
}

interface Drawn {
  keys: Key[];
  lines: Line[];
  /** Why lines are missing. */
  missing: string[];
}

function linesOf(page: Page, of: PageFigure): Drawn {
  const drawn: Drawn = { keys: [], lines: [], missing: [] };
  const axis = page.axes.find((axis) => axis.name === of.axis)?.labels;
  const order = axis ?? of.lines.map((line) => line.label);
  for (const { label, series, scale, trial, because } of of.lines) {
    const run = trial === null ? null : page.trials[trial];
    const points = series === null ? null : run?.series[series];
    if (!run || !points) {
      drawn.missing.push(because ?? `${label}: it was not recorded`);
      continue;
    }
    const look = lookOf(Math.max(0, order.indexOf(label)));
    const scaled = points.map((value) => (value === null ? null : value * scale));
    const bins = Math.max(1, Math.round((of.mean_over_s ?? 0) / run.bin_s));
    const values = means(scaled, bins);
    if (values.every((value) => value === null)) {
      drawn.missing.push(`${label}: nothing was measured`);
      continue;
    }
    drawn.keys.push({ label, ...look });
    drawn.lines.push({
      label,
      ...look,
      style: "line",
      faint: false,
      bin_s: run.bin_s * bins,
      values,
    });
  }
  return drawn;
}

/** The mean of every `bins` values; null where none was measured. */
function means(values: (number | null)[], bins: number): (number | null)[] {
  if (bins === 1) return values;
  return Array.from({ length: Math.ceil(values.length / bins) }, (_, index) => {
    const some = values.slice(index * bins, (index + 1) * bins).filter((value) => value !== null);
    return some.length ? some.reduce((sum, value) => sum + value, 0) / some.length : null;
  });
}

/** The plot, redrawn for every width, with a cursor that shows the values. */
function plot(label: string, spec: (width: number) => Spec, readout: HTMLElement): HTMLElement {
  const svg = s("svg", { role: "img", "aria-label": label, tabindex: 0 });
  const overlay = s("svg", { class: "overlay", "aria-hidden": "true" });
  const box = h("div", { class: "plot" }, svg, overlay);
  let now: { spec: Spec; chart: Chart } | null = null;
  let at: number | null = null;
  const redraw = (width: number) => {
    const fresh = spec(width);
    now = { spec: fresh, chart: draw(fresh) };
    for (const element of [svg, overlay]) {
      element.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      element.setAttribute("height", String(HEIGHT));
    }
    svg.replaceChildren(now.chart.group);
    overlay.replaceChildren();
  };
  const point = (t: number | null) => {
    at = t === null || !now ? null : Math.min(now.spec.x[1], Math.max(0, t));
    overlay.replaceChildren(...(now && at !== null ? mark(now, at) : []));
    readout.replaceChildren(...(now && at !== null ? tell(now, at) : []));
  };
  svg.addEventListener("pointermove", (event) => {
    const frame = svg.getBoundingClientRect();
    if (now) point(now.chart.time(((event.clientX - frame.left) / frame.width) * now.spec.width));
  });
  svg.addEventListener("pointerleave", () => point(null));
  svg.addEventListener("blur", () => point(null));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || !now) return;
    event.preventDefault();
    point((at ?? now.spec.x[1] / 2) + step * (event.shiftKey ? 10 : 1));
  });
  redraw(560);
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth && box.clientWidth !== width) redraw(box.clientWidth);
    width = box.clientWidth;
  }).observe(box);
  window.addEventListener("beforeprint", () => redraw(680));
  window.addEventListener("afterprint", () => redraw(box.clientWidth || 560));
  return box;
}
