// Very many trials: a map and a scatter plot over two axes, with a filter and a link to each trial's own page.

import { h } from "./dom";
import { plain, scaleFor, whole } from "./format";
import type { Page, PageCell } from "./generated/page";

/** Rows of the list below the map. */
const LISTED = 100;
const WIDTH = 860;
const HEIGHT = 430;
const MARGIN = { left: 90, right: 20, top: 12, bottom: 56 };
/** Labels along an axis of the map; more would overlap. */
const TICKS = 12;

interface Choice {
  metric: number;
  other: number;
  across: number;
  down: number;
  /** The label that each axis is restricted to; empty for all. */
  kept: string[];
}

interface Spot {
  /** One, or all whose mean it is. */
  cells: PageCell[];
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The section; null if the page shows each trial itself. */
export function many(page: Page): HTMLElement | null {
  const measured = page.metrics.flatMap((_, index) =>
    page.cells.some((cell) => cell.metrics[index]) ? [index] : [],
  );
  return page.many && measured.length ? new Many(page, measured).element : null;
}

class Many {
  readonly element: HTMLElement;
  private readonly choice: Choice;
  private readonly map = canvas("Map of a metric over two axes");
  private readonly scatter = canvas("One metric over another");
  private readonly list = h("div", { class: "scroll" });
  private readonly told = h("p", { class: "hint", "aria-live": "polite" });
  private spots = new Map<HTMLCanvasElement, Spot[]>();

  constructor(
    private readonly page: Page,
    /** The metrics that some cell has. */
    private readonly measured: number[],
  ) {
    const sizes = page.axes.map((axis, index) => ({ index, n: axis.labels.length }));
    const [first, second] = sizes.sort((a, b) => b.n - a.n);
    this.choice = {
      metric: measured[0] ?? 0,
      other: measured[1] ?? measured[0] ?? 0,
      across: first?.index ?? -1,
      down: second?.index ?? -1,
      kept: page.axes.map(() => ""),
    };
    for (const one of [this.map, this.scatter]) {
      one.addEventListener("mousemove", (event) => this.hover(one, event));
      one.addEventListener("click", (event) => this.open(one, event));
    }
    this.element = h(
      "section",
      { id: "many", "aria-labelledby": "many-title" },
      h("h2", { id: "many-title" }, "Maps"),
      this.controls(),
      h("figure", {}, this.map),
      h("figure", {}, this.scatter),
      this.told,
      this.list,
    );
    this.redraw();
    // A canvas keeps the colours that it was drawn in.
    new MutationObserver(() => this.paint()).observe(document.documentElement, {
      attributeFilter: ["data-theme"],
    });
  }

  private controls(): HTMLElement {
    const { page, choice, measured } = this;
    const metrics = measured.map((index) => page.metrics[index]?.label ?? "");
    const place = (metric: number) => measured.indexOf(metric);
    const axes = page.axes.map((axis) => axis.name);
    const box = h(
      "p",
      { class: "controls screen" },
      this.select("metric", metrics, place(choice.metric), (index) => {
        choice.metric = measured[index] ?? 0;
      }),
      this.select("over metric", metrics, place(choice.other), (index) => {
        choice.other = measured[index] ?? 0;
      }),
      this.select("across", axes, choice.across, (index) => {
        choice.across = index;
      }),
      this.select("up", axes, choice.down, (index) => {
        choice.down = index;
      }),
    );
    page.axes.forEach((axis, index) => {
      box.append(
        this.select(`only ${axis.name}`, ["all", ...axis.labels], 0, (label) => {
          choice.kept[index] = label ? (axis.labels[label - 1] ?? "") : "";
        }),
      );
    });
    return box;
  }

  private select(name: string, options: string[], chosen: number, change: (index: number) => void) {
    const items = options.map((text, index) =>
      h("option", { value: index, selected: index === chosen }, text),
    );
    const select = h("select", {}, ...items);
    select.addEventListener("change", () => {
      change(Number(select.value));
      this.redraw();
    });
    return h("label", {}, `${name} `, select, " ");
  }

  private cells(): PageCell[] {
    const { kept } = this.choice;
    return this.page.cells.filter((cell) =>
      kept.every((label, axis) => !label || cell.values[axis] === label),
    );
  }

  private redraw(): void {
    const cells = this.cells();
    this.paint();
    const spots = this.spots.get(this.map) ?? [];
    const several = spots.some((spot) => spot.cells.length > 1)
      ? " A place of the map with several cells has their mean; click to list them."
      : "";
    const open = this.page.trials.some((trial) => trial.own_page)
      ? "; click to open its trial"
      : "";
    this.told.textContent = `${whole(cells.length)} of ${whole(this.page.cells.length)} cells. Point at one to read it${open}.${several}`;
    this.list.replaceChildren(this.rows(cells));
  }

  private paint(): void {
    const cells = this.cells();
    this.spots = new Map([
      [this.map, this.drawMap(cells)],
      [this.scatter, this.drawScatter(cells)],
    ]);
  }

  private labels(axis: number): string[] {
    const kept = this.choice.kept[axis];
    return kept ? [kept] : (this.page.axes[axis]?.labels ?? [""]);
  }

  /** The mean of the cells at each place: axes that are not shown are averaged. */
  private drawMap(cells: PageCell[]): Spot[] {
    const { metric, across, down } = this.choice;
    const [columns, rows] = [this.labels(across), this.labels(down)];
    const pen = fresh(this.map);
    const [width, height] = [inner(0) / columns.length, inner(1) / rows.length];
    const places = new Map<string, PageCell[]>();
    for (const cell of cells) {
      if (!cell.metrics[metric]) continue;
      const key = JSON.stringify([cell.values[across] ?? "", cell.values[down] ?? ""]);
      const place = places.get(key);
      if (place) place.push(cell);
      else places.set(key, [cell]);
    }
    const [least, most] = range([...places.values()].map((place) => mean(place, metric) ?? 0));
    const spots: Spot[] = [];
    columns.forEach((column, i) => {
      rows.forEach((row, j) => {
        const place = places.get(JSON.stringify([column, row]));
        if (!place) return;
        const x = MARGIN.left + i * width;
        const y = MARGIN.top + (rows.length - 1 - j) * height;
        pen.fillStyle = colour(((mean(place, metric) ?? 0) - least) / (most - least || 1));
        pen.fillRect(x, y, Math.ceil(width), Math.ceil(height));
        spots.push({ cells: place, x, y, width, height });
      });
    });
    this.axis(pen, 0, columns, this.page.axes[across]?.name ?? "");
    this.axis(pen, 1, rows, this.page.axes[down]?.name ?? "");
    this.legend(pen, least, most);
    return spots;
  }

  private axis(pen: CanvasRenderingContext2D, way: 0 | 1, labels: string[], name: string): void {
    const step = Math.ceil(labels.length / TICKS);
    pen.fillStyle = ink();
    labels.forEach((label, index) => {
      if (index % step) return;
      const at = ((index + 0.5) * inner(way)) / labels.length;
      pen.textAlign = way ? "right" : "center";
      if (way) pen.fillText(label, MARGIN.left - 6, HEIGHT - MARGIN.bottom - at + 4);
      else pen.fillText(label, MARGIN.left + at, HEIGHT - MARGIN.bottom + 16);
    });
    pen.textAlign = "left";
    if (way) pen.fillText(name, 4, MARGIN.top + 8);
    else pen.fillText(name, MARGIN.left, HEIGHT - 6);
  }

  /** What the colours of the map stand for. */
  private legend(pen: CanvasRenderingContext2D, least: number, most: number): void {
    const metric = this.page.metrics[this.choice.metric];
    const left = MARGIN.left + inner(0) / 2;
    for (let step = 0; step < 100; step++) {
      pen.fillStyle = colour(step / 99);
      pen.fillRect(left + step, HEIGHT - 18, 1, 10);
    }
    pen.fillStyle = ink();
    const words = [this.text(least), "to", this.text(most), metric?.label ?? ""];
    pen.fillText(words.join(" "), left + 108, HEIGHT - 9);
  }

  private drawScatter(cells: PageCell[]): Spot[] {
    const { metric, other } = this.choice;
    const pen = fresh(this.scatter);
    const points = cells.flatMap((cell) => {
      const [x, y] = [cell.metrics[other]?.mean, cell.metrics[metric]?.mean];
      return x === undefined || y === undefined ? [] : [{ cell, x, y }];
    });
    const [left, right] = range(points.map((point) => point.x));
    const [low, high] = range(points.map((point) => point.y));
    pen.globalAlpha = points.length > 1000 ? 0.4 : 0.8;
    pen.fillStyle = colour(0.35);
    const spots = points.map(({ cell, x, y }) => {
      const across = MARGIN.left + ((x - left) / (right - left || 1)) * inner(0);
      const up = HEIGHT - MARGIN.bottom - ((y - low) / (high - low || 1)) * inner(1);
      pen.fillRect(across - 2, up - 2, 4, 4);
      return { cells: [cell], x: across - 4, y: up - 4, width: 8, height: 8 };
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = ink();
    pen.strokeRect(MARGIN.left, MARGIN.top, inner(0), inner(1));
    pen.fillStyle = ink();
    const [base, bottom] = [HEIGHT - MARGIN.bottom, HEIGHT - 6];
    pen.fillText(this.text(left, other), MARGIN.left, base + 16);
    pen.textAlign = "right";
    pen.fillText(this.text(right, other), WIDTH - MARGIN.right, base + 16);
    pen.fillText(this.text(high), MARGIN.left - 6, MARGIN.top + 10);
    pen.fillText(this.text(low), MARGIN.left - 6, base);
    pen.textAlign = "left";
    pen.fillText(this.page.metrics[other]?.label ?? "", MARGIN.left, bottom);
    pen.fillText(this.page.metrics[metric]?.label ?? "", MARGIN.left + 6, MARGIN.top + 14);
    return spots;
  }

  private text(value: number, index: number = this.choice.metric): string {
    const metric = this.page.metrics[index];
    const scale = scaleFor(metric?.unit ?? "", Math.abs(value));
    return `${plain(value / scale.factor, 3)} ${scale.unit}`.trim();
  }

  private at(of: HTMLCanvasElement, event: MouseEvent): PageCell[] {
    const box = of.getBoundingClientRect();
    const x = ((event.clientX - box.left) * WIDTH) / box.width;
    const y = ((event.clientY - box.top) * HEIGHT) / box.height;
    const under = (spot: Spot) =>
      x >= spot.x && x < spot.x + spot.width && y >= spot.y && y < spot.y + spot.height;
    return this.spots.get(of)?.find(under)?.cells ?? [];
  }

  private hover(of: HTMLCanvasElement, event: MouseEvent): void {
    const cells = this.at(of, event);
    of.style.cursor = cells.length ? "pointer" : "";
    if (!cells.length) return;
    const { metric, other } = this.choice;
    const figures = [...new Set([metric, other])].flatMap((index) => {
      const value = mean(cells, index);
      return value === null ? [] : `${this.page.metrics[index]?.label} ${this.text(value, index)}`;
    });
    this.told.textContent = [this.name(cells), ...figures].join(": ");
  }

  /** What a place is called: the cell, or of which cells it has the mean. */
  private name(cells: PageCell[]): string {
    const [first] = cells;
    if (cells.length === 1) return first?.label ?? "";
    const { across, down } = this.choice;
    const shown = [...new Set([across, down])].flatMap((axis) => first?.values[axis] ?? []);
    return [`mean of ${whole(cells.length)} cells`, ...shown].join(" · ");
  }

  private open(of: HTMLCanvasElement, event: MouseEvent): void {
    const cells = this.at(of, event);
    if (cells.length > 1) {
      this.list.replaceChildren(this.rows(cells));
      return;
    }
    const trials = cells.flatMap((cell) => cell.trials).map((index) => this.page.trials[index]);
    const trial = trials.find((one) => one?.own_page);
    if (trial) window.open(address(trial.folder), "_blank", "noopener");
  }

  /** The trials of the first cells, each with a link to its own page. */
  private rows(cells: PageCell[]): HTMLElement {
    const { metric } = this.choice;
    const rows = cells.slice(0, LISTED).map((cell) => {
      const links = cell.trials.flatMap((index) => {
        const trial = this.page.trials[index];
        if (!trial) return [];
        const name = `${trial.repetition}${trial.valid ? "" : " (not valid)"}`;
        const link = h("a", { href: address(trial.folder) }, name);
        return [trial.own_page ? link : h("span", {}, name), " "];
      });
      const mean = cell.metrics[metric]?.mean;
      const value = mean === undefined ? "–" : this.text(mean);
      return h(
        "tr",
        {},
        h("th", { scope: "row" }, cell.label),
        h("td", { class: "number" }, value),
        h("td", {}, ...links),
      );
    });
    const head = ["cell", this.page.metrics[metric]?.label ?? "", "trials"].map((text) =>
      h("th", { scope: "col" }, text),
    );
    const table = h(
      "table",
      { class: "small" },
      h("thead", {}, h("tr", {}, ...head)),
      h("tbody", {}, ...rows),
    );
    const more = cells.length - rows.length;
    return h("div", {}, table, more > 0 ? h("p", { class: "hint" }, `and ${more} more`) : null);
  }
}

/** The mean of a metric over cells; null if none measured it. */
function mean(cells: PageCell[], metric: number): number | null {
  const known = cells.flatMap((cell) => cell.metrics[metric]?.mean ?? []);
  return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}

/** A page in a trial's folder, or the folder itself, relative to this page; the folder's name is a stranger's text. */
export function address(folder: string, page = "report.html"): string {
  return `./${folder.split("/").map(encodeURIComponent).join("/")}/${page}`;
}

function canvas(label: string): HTMLCanvasElement {
  const made = h("canvas", {
    role: "img",
    "aria-label": label,
    width: 2 * WIDTH,
    height: 2 * HEIGHT,
  });
  made.style.width = "100%";
  made.style.maxWidth = `${WIDTH}px`;
  return made;
}

function fresh(of: HTMLCanvasElement): CanvasRenderingContext2D {
  const pen = of.getContext("2d");
  if (!pen) throw new Error("this browser has no canvas");
  // Two dots per pixel, for displays that have them.
  pen.setTransform(2, 0, 0, 2, 0, 0);
  pen.clearRect(0, 0, WIDTH, HEIGHT);
  pen.font = "12px system-ui, sans-serif";
  pen.textAlign = "left";
  return pen;
}

function inner(way: 0 | 1): number {
  return way ? HEIGHT - MARGIN.top - MARGIN.bottom : WIDTH - MARGIN.left - MARGIN.right;
}

function range(values: number[]): [number, number] {
  if (!values.length) return [0, 0];
  return values.reduce<[number, number]>(
    ([least, most], value) => [Math.min(least, value), Math.max(most, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
}

/** The text colour of the page, light or dark. */
function ink(): string {
  return getComputedStyle(document.body).color;
}

/** From dark blue over green to yellow: ordered in lightness, so that it reads in grey, too. */
function colour(share: number): string {
  const stops = [
    [68, 1, 84],
    [59, 82, 139],
    [33, 145, 140],
    [94, 201, 98],
    [253, 231, 37],
  ];
  const place = Math.min(0.9999, Math.max(0, share)) * (stops.length - 1);
  const [from, to] = [stops[Math.floor(place)] ?? [], stops[Math.floor(place) + 1] ?? []];
  const part = place - Math.floor(place);
  const mixed = from.map((value, index) => Math.round(value + part * ((to[index] ?? 0) - value)));
  return `rgb(${mixed.join(" ")})`;
}
