// Why: a strip above the figures that shows what limited each viewer or flow, and sentences on stalls and the like.

import type { Look } from "./data";
import { h, s } from "./dom";
import { whole } from "./format";
import type { Page, PageLimits, PageTrial } from "./generated/page";

/** Where a figure's plot begins and ends, as in chart.ts. */
const LEFT = 54;
const RIGHT = 14;
const ROW = 18;
const GAP = 5;
/** A label fits into a stretch that is as wide as this for each character. */
const CHARACTER = 6.2;
/** Sentences shown at first of each trial. */
const FIRST = 5;

/** What the strip shows of a cell. */
export interface Shown {
  look: Look;
  label: string;
  trial: PageTrial;
}

/** The colour of a cause: its place in the style sheet's list. */
function colour(page: Page, cause: number): string {
  return `var(--why-${page.causes[cause]?.cause ?? "unknown"})`;
}

/** Black or white, whichever reads better on the colour of a cause. */
function labelColour(page: Page, cause: number): string {
  const name = `--why-${page.causes[cause]?.cause ?? "unknown"}`;
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  // WCAG 2, relative luminance: above this, black has the higher contrast.
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? "#000" : "#fff";
}

/** True if there is anything to show. */
export function hasStrip(page: Page): boolean {
  return page.causes.length > 0 && page.trials.some((trial) => trial.limits.length > 0);
}

/** The figure of strips, which is drawn again when the view changes. */
export class Strip {
  readonly element: HTMLElement;
  private readonly svg: SVGSVGElement;
  private readonly readout = h("output", { class: "readout" });
  private rows: { limits: PageLimits; label: string; look: Look; trial: PageTrial }[] = [];

  constructor(private readonly page: Page) {
    this.svg = s("svg", {
      role: "img",
      "aria-label": "what limited each viewer or flow over time",
    });
    const keys = page.causes.map(({ label, doc }, index) =>
      h(
        "span",
        { class: "cause", title: doc },
        h("i", { style: `background:${colour(page, index)}` }),
        label,
      ),
    );
    this.element = h(
      "figure",
      { class: "why-strip" },
      h(
        "figcaption",
        {},
        h("strong", {}, "Limited by"),
        h("span", { class: "note" }, "what held the transfer back at each moment"),
        this.readout,
      ),
      h("div", { class: "plot" }, this.svg),
      h("div", { class: "causes" }, ...keys),
    );
  }

  draw(shown: Shown[], [from, to]: [number, number], width: number): void {
    this.rows = shown.flatMap(({ look, label, trial }) =>
      trial.limits.map((limits) => {
        const several = trial.limits.length > 1;
        const name = several ? `${label} · ${limits.name}` : label;
        return { limits, look, label: trial.valid ? name : `${name} (not valid)`, trial };
      }),
    );
    const height = Math.max(1, this.rows.length) * (ROW + GAP) + GAP;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", String(height));
    const px = (t: number) => LEFT + ((t - from) / (to - from || 1)) * (width - LEFT - RIGHT);
    this.svg.replaceChildren(
      ...this.rows.map(({ limits, look, label, trial }, row) => {
        const y = GAP + row * (ROW + GAP);
        const mark = s(
          "line",
          {
            x1: 30,
            x2: LEFT - 6,
            y1: y + ROW / 2,
            y2: y + ROW / 2,
            "stroke-width": 3,
            "stroke-dasharray": look.dash,
            style: `stroke:${look.colour}`,
          },
          s("title", {}, label),
        );
        const parts = limits.spans
          .filter(([a, b]) => b > from && a < to)
          .flatMap(([a, b, cause]) =>
            this.stretch([px(Math.max(a, from)), px(Math.min(b, to))], y, cause, [a, b]),
          );
        // Some causes are nearly as light, or as dark, as the paper.
        const spans = limits.spans.filter(([a, b]) => b > from && a < to);
        const [first, last] = [spans[0]?.[0] ?? from, spans.at(-1)?.[1] ?? from];
        const [left, right] = [px(Math.max(first, from)), px(Math.min(last, to))];
        const edge = "fill:none;stroke:var(--axis);stroke-width:1";
        const frame = { x: left, y, width: Math.max(0, right - left), height: ROW, style: edge };
        const faint = trial.valid ? null : 0.45;
        return s("g", { opacity: faint }, mark, ...parts, s("rect", frame));
      }),
    );
  }

  private stretch(
    [left, right]: [number, number],
    y: number,
    cause: number,
    [from, to]: [number, number],
  ): SVGElement[] {
    const label = this.page.causes[cause]?.label ?? "";
    const width = Math.max(0.5, right - left);
    const when = `${from.toFixed(1)} to ${to.toFixed(1)} s: ${label}`;
    const style = `fill:${colour(this.page, cause)}`;
    const box = s("rect", { x: left, y, width, height: ROW, style }, s("title", {}, when));
    if (width < label.length * CHARACTER + 8) return [box];
    const ink = `fill:${labelColour(this.page, cause)}`;
    const text = s("text", { x: left + 5, y: y + 13, class: "why-label", style: ink }, label);
    return [box, text];
  }

  /** Shows what limited each at a time. */
  point(t: number | null): void {
    const at = (limits: PageLimits) => {
      const span = limits.spans.find(([from, to]) => t !== null && from <= t && t < to);
      return span ? (this.page.causes[span[2]]?.label ?? "") : "–";
    };
    const words = this.rows.map(({ limits, look }) =>
      h(
        "span",
        { class: "value" },
        h("i", { class: "dot", style: `background:${look.colour}` }),
        at(limits),
      ),
    );
    this.readout.replaceChildren(...(t === null ? [] : words));
  }
}

/** The section of sentences; null if nobody had to wait. */
export function reasons(page: Page): HTMLElement | null {
  const waited = page.trials.filter((trial) => trial.effects.length > 0);
  if (!waited.length) return null;
  // What happened in trials that are not valid need not be what the scenario causes.
  const told = waited.sort((a, b) => Number(b.valid) - Number(a.valid));
  return h(
    "section",
    { id: "why", "aria-labelledby": "why-title" },
    h("h2", { id: "why-title" }, "Why"),
    h(
      "p",
      { class: "hint" },
      "What stalls, freezes, late frames and falls of the quality came from, the longest first. Open one for the rows that show it; ",
      h("code", {}, "suiro why DIR"),
      " prints all.",
    ),
    ...told.map((trial) => ofTrial(page, trial)),
  );
}

function ofTrial(page: Page, trial: PageTrial): HTMLElement {
  const cell = page.cells[trial.cell]?.label ?? "";
  const several = page.trials.some((other) => other.repetition > 1);
  const name = several ? `${cell}, repetition ${trial.repetition}` : cell;
  const items = trial.effects.map((effect) => {
    const cause = page.causes.findIndex((it) => it.cause === effect.causes[0]?.cause);
    const steps = effect.chain.map(({ what, evidence }) =>
      h("li", {}, what, " ", h("code", {}, evidence)),
    );
    // The name of the viewer does not begin a sentence about its frames or its quality.
    const ofFrames = ["quality", "frame_rate", "late", "missing"].includes(effect.effect);
    const subject = ofFrames ? `${effect.subject}:` : effect.subject;
    return h(
      "details",
      { class: "effect" },
      h(
        "summary",
        {},
        h("i", { style: `background:${colour(page, cause)}`, "aria-hidden": "true" }),
        h("span", {}, `${subject} ${effect.sentence}`),
      ),
      h("ol", {}, ...steps),
    );
  });
  const more = items.length - FIRST;
  const rest =
    more > 0 && h("details", {}, h("summary", {}, `${whole(more)} more`), ...items.slice(FIRST));
  const left = trial.effects_left_out;
  return h(
    "div",
    { class: "why-trial" },
    h("h3", {}, name, trial.valid ? null : h("small", { class: "bad" }, " not valid")),
    ...items.slice(0, FIRST),
    rest,
    left > 0 && h("p", { class: "hint" }, `${left} further ones are not on this page.`),
  );
}
