// The stack of figures on one time axis, with its legend and controls.

import { type Band, type Chart, draw, type Line, type Spec, valueAt } from "./chart";
import {
  type Look,
  leftOut,
  looks,
  type Panel,
  panels,
  type Repetition,
  type Run,
  runs,
} from "./data";
import { Distribution } from "./distribution";
import { h, s } from "./dom";
import { type Key, type Saved, save, standalone } from "./export";
import { plain } from "./format";
import type { Page } from "./generated/page";
import { type Controls, controls, sample } from "./legend";
import { hasStrip, Strip } from "./why";

/** What the reader chose to see. */
export interface View {
  shown: Set<number>;
  repetition: Repetition;
  zoom: [number, number] | null;
}

/** Cells drawn at first; more would hide each other. */
const SHOWN_AT_FIRST = 6;
/** Cells whose stalls are shaded over the whole height. */
const FULL_SHADES = 3;
/** Lines that bear a dot under the cursor; more would hide each other. */
const DOTS = 30;
/** Values shown next to a figure's title. */
const READOUTS = 8;

/** The section of figures; null if no trial recorded anything over time. */
export function figures(page: Page): HTMLElement | null {
  const all = panels(page);
  const duration = page.trials.reduce((most, trial) => Math.max(most, trial.duration_s ?? 0), 0);
  if (!all.length || duration <= 0) return null;
  return new Figures(page, all, duration).element;
}

/** The figures in which there is nothing to see. */
function notDrawn(page: Page): HTMLElement | null {
  const titles = leftOut(page);
  if (!titles.length) return null;
  return h("p", { class: "hint" }, `Not drawn, because all values are zero: ${titles.join("; ")}.`);
}

/** What the grey shade is; null without a warm-up. */
export function warmUpWords(trials: Pick<Run, "bin_s" | "warm_up_s">[]): string | null {
  const drawn = trials.filter((trial) => trial.bin_s > 0).map((trial) => trial.warm_up_s ?? 0);
  const most = drawn.reduce((a, b) => Math.max(a, b), 0);
  if (most <= 0) return null;
  const least = drawn.reduce((a, b) => Math.min(a, b), most);
  const about = "Metrics are about the time after it.";
  const [from, to] = [least, most].map((length) => Number(length.toPrecision(3)));
  if (least === most) return `Grey: the warm-up of ${to} s. ${about}`;
  return `Grey: the shortest warm-up of the cells shown, of ${from} to ${to} s: show one cell to see its own. ${about}`;
}

/** Until when all of these warmed up; 0 if one of them did not. */
export function sharedWarmUp(all: Pick<Run, "warm_up_s">[]): number {
  return all.length ? Math.min(...all.map((run) => run.warm_up_s ?? 0)) : 0;
}

function warmUp(page: Page): HTMLElement | null {
  const words = warmUpWords(page.trials);
  return words === null ? null : h("p", { class: "hint" }, words);
}

interface Frame {
  panel: Panel;
  /** All of it; hidden while no shown cell has a value. */
  figure: HTMLElement;
  svg: SVGSVGElement;
  /** Lies over the figure, so that moving the cursor does not repaint the lines. */
  overlay: SVGSVGElement;
  readout: HTMLElement;
  spec: Spec;
  chart: Chart;
}

class Figures {
  readonly element: HTMLElement;
  private readonly view: View;
  private readonly looks: Look[];
  private readonly frames: Frame[] = [];
  private readonly controls: Controls;
  private readonly strip: Strip | null;
  private readonly distribution: Distribution;
  private cursor: number | null = null;
  private drag: { from: number; frame: Frame } | null = null;

  constructor(
    private readonly page: Page,
    all: Panel[],
    private readonly duration: number,
  ) {
    this.looks = looks(page);
    const first = page.trials.find((trial) => trial.valid && trial.bin_s > 0) ?? page.trials[0];
    const able = page.cells.flatMap((cell, index) =>
      cell.trials.some((trial) => (page.trials[trial]?.bin_s ?? 0) > 0) ? [index] : [],
    );
    this.view = {
      shown: new Set(able.slice(0, SHOWN_AT_FIRST)),
      repetition: first?.repetition ?? 1,
      zoom: null,
    };
    this.controls = controls(page, this.looks, this.view, {
      changed: () => this.redraw(),
      zoom: (factor) => this.zoomBy(factor),
      save: () => this.saveAll(),
    });
    const stack = h("div", { class: "stack" });
    this.strip = hasStrip(page) ? new Strip(page) : null;
    if (this.strip) stack.append(this.strip.element);
    for (const panel of all) stack.append(this.frame(panel));
    this.distribution = new Distribution(page);
    this.element = h(
      "section",
      { id: "figures", "aria-labelledby": "figures-title" },
      h("h2", { id: "figures-title" }, "Over time"),
      h(
        "p",
        { class: "hint screen" },
        "Drag across a chart to zoom in, double-click to reset. Arrow keys move the cursor; + and − zoom.",
      ),
      warmUp(page),
      this.controls.element,
      stack,
      notDrawn(page),
      this.distribution.element,
    );
    let width = 0;
    new ResizeObserver(() => {
      if (stack.clientWidth !== width) this.redraw();
      width = stack.clientWidth;
    }).observe(stack);
    window.addEventListener("beforeprint", () => this.redraw(680));
    window.addEventListener("afterprint", () => this.redraw());
  }

  private frame(panel: Panel): HTMLElement {
    const readout = h("output", { class: "readout" });
    const overlay = s("svg", { class: "overlay", "aria-hidden": "true" });
    const svg = s("svg", {
      tabindex: 0,
      role: "img",
      "aria-label": `${panel.title} over time; arrow keys move the cursor`,
      "data-panel": panel.look.id,
    });
    const spec = this.spec(panel, 800);
    const figure = h("figure", {});
    const frame: Frame = { panel, figure, svg, overlay, readout, spec, chart: draw(spec) };
    this.frames.push(frame);
    this.listen(frame);
    const meaning = panel.series.map(({ info }) => `${info.label}: ${info.doc}`).join("\n");
    const parts = [
      h(
        "figcaption",
        { title: meaning },
        h("strong", {}, panel.title),
        h("span", { class: "note" }, note(panel)),
        readout,
        h(
          "button",
          {
            class: "save screen",
            title: `Save “${panel.title}” as SVG`,
            click: () => this.saveOne(frame),
          },
          "SVG",
        ),
      ),
      key(panel),
      h("div", { class: "plot" }, svg, overlay),
    ];
    figure.append(...parts.filter((part) => part !== null));
    return figure;
  }

  private spec(panel: Panel, width: number): Spec {
    const lines: Line[] = [];
    const bands: Band[] = [];
    const shown: Run[] = [];
    let lane = 0;
    for (const cell of [...this.view.shown].sort((a, b) => a - b)) {
      const look = this.looks[cell] as Look;
      const all = runs(this.page, cell, this.view.repetition);
      shown.push(...all);
      const label = this.page.cells[cell]?.label ?? "";
      for (const run of all) lines.push(...linesOf(panel, run, { label, ...look }, all.length > 1));
      if (panel.look.stalls && all.length === 1) {
        for (const [from, to] of all[0]?.stalls ?? []) {
          bands.push({
            colour: look.colour,
            from,
            to,
            lane,
            faint: this.view.shown.size > FULL_SHADES,
          });
        }
        lane++;
      }
    }
    return {
      unit: panel.series[0]?.info.unit ?? "",
      lines,
      bands,
      warm_up_s: sharedWarmUp(shown),
      x: this.view.zoom ?? [0, this.duration],
      width,
      height: panel.look.height_px,
      floating: panel.look.floating,
    };
  }

  private redraw(width?: number): void {
    for (const frame of this.frames) {
      const across = width ?? (frame.svg.parentElement?.clientWidth || 800);
      frame.spec = this.spec(frame.panel, across);
      frame.chart = draw(frame.spec);
      frame.figure.hidden = !frame.spec.lines.some(hasValue);
      for (const svg of [frame.svg, frame.overlay]) {
        svg.setAttribute("viewBox", `0 0 ${across} ${frame.spec.height}`);
        svg.setAttribute("height", String(frame.spec.height));
      }
      frame.svg.replaceChildren(frame.chart.group);
    }
    this.drawStrip(width);
    this.distribution.draw({
      cells: [...this.view.shown]
        .sort((a, b) => a - b)
        .map((cell) => ({ cell, look: this.looks[cell] as Look })),
      repetition: this.view.repetition,
      time: this.view.zoom ?? [0, this.duration],
    });
    this.controls.update();
    this.point(this.cursor);
  }

  /** The strip shows the chosen repetition of what is shown, or the first valid one. */
  private drawStrip(width?: number): void {
    if (!this.strip) return;
    const across = width ?? (this.strip.element.clientWidth || 800);
    const shown = [...this.view.shown]
      .sort((a, b) => a - b)
      .flatMap((cell) => {
        const { trials, label } = this.page.cells[cell] as Page["cells"][number];
        const own = trials.flatMap((index) => this.page.trials[index] ?? []);
        const asked = own.find((trial) => trial.repetition === this.view.repetition);
        const chosen = asked ?? own.find((trial) => trial.valid) ?? own[0];
        return chosen ? [{ look: this.looks[cell] as Look, label, trial: chosen }] : [];
      });
    this.strip.draw(shown, this.view.zoom ?? [0, this.duration], across);
  }

  /** Puts the cursor at a time, in every figure. */
  private point(t: number | null): void {
    const [from, to] = this.view.zoom ?? [0, this.duration];
    this.cursor = t === null || t < from || t > to ? null : t;
    for (const frame of this.frames) {
      const parts = this.cursor === null ? [] : mark(frame, this.cursor);
      if (this.drag?.frame === frame && this.cursor !== null)
        parts.push(selection(frame, this.drag.from, this.cursor));
      frame.overlay.replaceChildren(...parts);
      frame.readout.replaceChildren(...(this.cursor === null ? [] : tell(frame, this.cursor)));
    }
    this.strip?.point(this.cursor);
    this.controls.time(this.cursor);
  }

  private zoomTo(a: number, b: number): void {
    const least = Math.max(...this.page.trials.map((trial) => trial.bin_s)) * 5;
    const from = Math.max(0, Math.min(a, b));
    const to = Math.min(this.duration, Math.max(a, b));
    if (to - from < least) return;
    this.view.zoom = from <= 0 && to >= this.duration ? null : [from, to];
    this.redraw();
  }

  /** Makes what is shown `factor` times as long, about the cursor or the middle; 0 shows all. */
  private zoomBy(factor: number): void {
    if (factor === 0) {
      this.view.zoom = null;
      this.redraw();
      return;
    }
    const [from, to] = this.view.zoom ?? [0, this.duration];
    const about = this.cursor ?? (from + to) / 2;
    this.zoomTo(about - (about - from) * factor, about + (to - about) * factor);
  }

  private listen(frame: Frame): void {
    const { svg } = frame;
    const time = (event: PointerEvent | MouseEvent) => {
      const box = svg.getBoundingClientRect();
      const { left, right } = frame.chart;
      const x = ((event.clientX - box.left) / box.width) * frame.spec.width;
      return frame.chart.time(Math.min(right, Math.max(left, x)));
    };
    let pending = 0;
    svg.addEventListener("pointermove", (event) => {
      const t = time(event);
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => this.point(t));
    });
    svg.addEventListener("pointerleave", () => {
      cancelAnimationFrame(pending);
      if (!this.drag) this.point(null);
    });
    svg.addEventListener("pointerdown", (event) => {
      this.point(time(event));
      if (event.pointerType === "touch" || event.button !== 0) return;
      this.drag = { from: time(event), frame };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointerup", (event) => {
      const drag = this.drag;
      this.drag = null;
      if (!drag) return;
      const [from, to] = this.view.zoom ?? [0, this.duration];
      if (Math.abs(time(event) - drag.from) > (to - from) * 0.01)
        this.zoomTo(drag.from, time(event));
      this.point(time(event));
    });
    svg.addEventListener("dblclick", () => this.zoomBy(0));
    svg.addEventListener("keydown", (event) => this.key(event, frame));
    svg.addEventListener("blur", () => this.point(null));
  }

  private key(event: KeyboardEvent, frame: Frame): void {
    const [from, to] = this.view.zoom ?? [0, this.duration];
    const bin = frame.spec.lines[0]?.bin_s ?? 0.1;
    const step = bin * (event.shiftKey ? 10 : 1);
    const at = this.cursor ?? from + (to - from) / 2;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.point(Math.max(from, at - step)),
      ArrowRight: () => this.point(Math.min(to, at + step)),
      Home: () => this.point(from),
      End: () => this.point(to),
      Escape: () => this.point(null),
      "+": () => this.zoomBy(0.5),
      "-": () => this.zoomBy(2),
      "0": () => this.zoomBy(0),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  private keys(): Key[] {
    return [...this.view.shown]
      .sort((a, b) => a - b)
      .map((cell) => {
        return { label: this.page.cells[cell]?.label ?? "", ...(this.looks[cell] as Look) };
      });
  }

  private saveOne(frame: Frame): void {
    const name = frame.panel.title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    save(
      `${this.page.scenario}-${name}.svg`,
      standalone(this.page.title, this.keys(), [saved(frame)]),
    );
  }

  private saveAll(): void {
    const all = this.frames.filter((frame) => !frame.figure.hidden).map(saved);
    save(`${this.page.scenario}.svg`, standalone(this.page.title, this.keys(), all));
  }
}

function hasValue(line: Line): boolean {
  return line.values.some((value) => value !== null);
}

function saved(frame: Frame): Saved {
  return {
    title: frame.panel.title,
    note: note(frame.panel),
    keys: keysOf(frame.panel),
    spec: { ...frame.spec, height: frame.spec.height + 14 },
  };
}

/** The series of a panel that are lines of their own. */
function mainOf(panel: Panel): Panel["series"] {
  return panel.series.filter(({ info }) => isMain(info));
}

/** What a cell's line of the series at this place is drawn with: so many dots after each dash, every fourth a short dash. */
function dotted(dash: string, place: number): string {
  if (place === 0) return dash;
  const more = (times: number, what: string) => Array<string>(times).fill(what);
  const [short, dots] = [Math.floor(place / 4), place % 4];
  return [dash || "10 3", ...more(short, "5 3"), ...more(dots, "1.5 3")].join(" ");
}

/** The lines of a run. Of several series of a panel, each has another dash, and says which it is. */
export function linesOf(panel: Panel, run: Run, cell: Key, several: boolean): Line[] {
  const main = mainOf(panel);
  return panel.series.flatMap((one): Line[] => {
    const { index, info } = one;
    const values = run.points(index);
    if (!values || (several && info.style === "context")) return [];
    const faint = several || !run.valid;
    const line = { ...cell, style: info.style, faint, bin_s: run.bin_s, values };
    if (main.length < 2 || !isMain(info)) return [line];
    const dash = dotted(cell.dash, main.indexOf(one));
    return [{ ...line, dash, series: info.label }];
  });
}

/** The dash of each series of a panel, as in a cell with a solid line; empty if there is but one. */
export function keysOf(panel: Panel): Key[] {
  const main = mainOf(panel);
  if (main.length < 2) return [];
  return main.map(({ info }, place) => {
    return { label: info.label, colour: "var(--ink)", dash: dotted("", place) };
  });
}

function key(panel: Panel): HTMLElement | null {
  const keys = keysOf(panel).map((one) => h("span", { class: "key" }, sample(one), one.label));
  return keys.length ? h("div", { class: "legend plain" }, ...keys) : null;
}

/** What the lines that are not the main one are. */
function note(panel: Panel): string {
  const words = panel.series.flatMap(({ info }) => {
    if (info.style === "bound") return [`grey: ${info.label}`];
    return info.style === "context" ? [`dotted: ${info.label}`] : [];
  });
  const shaded = panel.look.stalls ? ["bars on top: stalled"] : [];
  return [...new Set(words), ...shaded].join(" · ");
}

/** What is drawn of a figure. */
type Sight = Pick<Frame, "chart" | "spec">;

/** The cursor at a time, and a dot on every line. */
export function mark(frame: Sight, t: number): SVGElement[] {
  const { chart, spec } = frame;
  const x = chart.px(t);
  const parts: SVGElement[] = [
    s("line", {
      x1: x,
      x2: x,
      y1: chart.top,
      y2: chart.bottom,
      style: "stroke:var(--muted);stroke-width:1",
    }),
  ];
  const main = spec.lines.filter(isMain);
  for (const line of main.length > DOTS ? [] : main) {
    const value = valueAt(line, t);
    if (value === null) continue;
    const style = `fill:${line.colour};stroke:var(--paper);stroke-width:1.5`;
    parts.push(s("circle", { cx: x, cy: chart.py(value), r: 3.5, style }));
  }
  return parts;
}

function selection(frame: Frame, from: number, to: number): SVGElement {
  const [a, b] = [frame.chart.px(Math.min(from, to)), frame.chart.px(Math.max(from, to))];
  const { top, bottom } = frame.chart;
  const style = "fill:var(--accent);fill-opacity:.15;stroke:var(--accent);stroke-opacity:.5";
  return s("rect", { x: a, width: b - a, y: top, height: bottom - top, style });
}

function isMain({ style }: Pick<Line, "style">): boolean {
  return style !== "context" && style !== "bound";
}

/** The values at a time. */
export function tell(frame: Sight, t: number): HTMLElement[] {
  const { scale } = frame.chart;
  const text = (line: Line) => {
    const value = valueAt(line, t);
    return value === null ? "–" : plain(value / scale.factor, 3);
  };
  const main = frame.spec.lines.filter(isMain);
  const parts = main
    .slice(0, READOUTS)
    .map((line) =>
      h(
        "span",
        { class: "value" },
        sample(line),
        h("span", { class: "unseen" }, `${line.label}: `),
        line.series ? `${line.series} ${text(line)}` : text(line),
      ),
    );
  if (main.length > READOUTS) parts.push(h("span", {}, "…"));
  if (parts.length) parts.push(h("span", { class: "unit" }, scale.unit));
  return parts;
}
