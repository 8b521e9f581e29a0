// A board of two axes: one value for each combination, coloured by its rank within the column. A cell opens its trials.

import { type Band, draw, type Line } from "./chart";
import { lookOf, type Run, runs } from "./data";
import { h, s } from "./dom";
import { margin, most, plain, scaleFor, shown, whole } from "./format";
import type { Page, PageCell, PageMetric, PageSeries, PageTrial } from "./generated/page";
import { address } from "./many";

/** Causes named of each row. */
const CAUSES = 2;
/** Height of the charts of an opened cell, in pixels. */
const HEIGHT = 190;

interface Choice {
  metric: number;
  rows: number;
  columns: number;
  /** The label that each other axis is restricted to. */
  kept: string[];
  opened: number | null;
}

interface Place {
  cell: number;
  mean: number;
  /** From 1, the best; equal numbers share a rank. `null`: no direction is better, or a value of the column is of one trial. */
  rank: number | null;
  /** How many ranks the column has. */
  ranks: number;
}

/** The section; null if no two axes vary, or the page shows very many trials. */
export function board(page: Page): HTMLElement | null {
  const varied = page.axes.filter((axis) => axis.labels.length > 1);
  const metrics = page.metrics.flatMap((_, index) => {
    const measured = page.cells.filter((cell) => cell.metrics[index]).length;
    return measured * 2 > page.cells.length ? [index] : [];
  });
  if (page.many || varied.length < 2 || !metrics.length) return null;
  return new Board(page, metrics).element;
}

class Board {
  readonly element: HTMLElement;
  private readonly choice: Choice;
  private readonly table = h("div", { class: "scroll" });
  private readonly notes = h("ul", { class: "notes" });
  private readonly opened = h("div", { class: "opened", "aria-live": "polite" });
  private readonly others = h("span", {});

  constructor(
    private readonly page: Page,
    private readonly metrics: number[],
  ) {
    const varied = page.axes.flatMap((axis, index) => (axis.labels.length > 1 ? [index] : []));
    const judged = metrics.filter((index) => page.metrics[index]?.better !== "neither");
    this.choice = {
      metric: judged.find((index) => page.metrics[index]?.main) ?? metrics[0] ?? 0,
      rows: varied[0] ?? 0,
      columns: varied[1] ?? 0,
      kept: page.axes.map((axis) => axis.labels[0] ?? ""),
      opened: null,
    };
    this.element = h(
      "section",
      { id: "board", "aria-labelledby": "board-title" },
      h("h2", { id: "board-title" }, "Board"),
      h(
        "p",
        { class: "hint" },
        "One value for each combination: the mean over valid repetitions ± half the 95 % confidence interval. With two repetitions or more, the small number is its rank in the column, the best first; blue is better, orange worse. Click a value to open its trials.",
      ),
      this.controls(),
      this.table,
      this.notes,
      this.opened,
    );
    this.redraw();
  }

  private controls(): HTMLElement {
    const { page, choice, metrics } = this;
    const names = metrics.map((index) => {
      const metric = page.metrics[index];
      return metric ? `${metric.label} (${metric.name})` : "";
    });
    const axes = page.axes.map((axis) => axis.name);
    const turn = (key: "rows" | "columns") => (index: number) => {
      const other = key === "rows" ? "columns" : "rows";
      if (choice[other] === index) choice[other] = choice[key];
      choice[key] = index;
    };
    return h(
      "p",
      { class: "controls screen" },
      select("value", names, metrics.indexOf(choice.metric), (index) => {
        choice.metric = metrics[index] ?? 0;
        this.redraw();
      }),
      ...(["rows", "columns"] as const).map((key) => {
        const label = select(key, axes, choice[key], (index) => {
          turn(key)(index);
          this.element.replaceChild(
            this.controls(),
            this.element.querySelector(".controls") as Node,
          );
          this.redraw();
        });
        return label;
      }),
      this.others,
    );
  }

  /** Of axes that are neither rows nor columns, one value is shown. */
  private restrictions(): HTMLElement[] {
    return this.page.axes.flatMap((axis, index) => {
      if ([this.choice.rows, this.choice.columns].includes(index) || axis.labels.length < 2)
        return [];
      const chosen = axis.labels.indexOf(this.choice.kept[index] ?? "");
      return [
        select(axis.name, axis.labels, chosen, (label) => {
          this.choice.kept[index] = axis.labels[label] ?? "";
          this.redraw();
        }),
      ];
    });
  }

  private cellAt(row: string, column: string): number | null {
    const { rows, columns, kept } = this.choice;
    const wanted = (index: number) =>
      index === rows ? row : index === columns ? column : kept[index];
    const found = this.page.cells.findIndex((cell) =>
      cell.values.every((value, index) => value === wanted(index)),
    );
    return found < 0 ? null : found;
  }

  /** The places of a column, by row. */
  private column(metric: PageMetric, column: string, rows: string[]): (Place | null)[] {
    const { page, choice } = this;
    const values = rows.map((row) => {
      const cell = this.cellAt(row, column);
      const spread = cell === null ? null : page.cells[cell]?.metrics[choice.metric];
      return cell === null || !spread ? null : { cell, mean: spread.mean, n: spread.n };
    });
    // One trial shows what can happen, not what is better.
    const ranked =
      metric.better !== "neither" && values.every((value) => value === null || value.n > 1);
    const known = values.flatMap((value) => (value ? [value.mean] : []));
    const scale = scaleFor(metric.unit, most(known.map(Math.abs)));
    const text = (mean: number) => shown(mean, scale, metric.digits);
    const sign = metric.better === "higher" ? -1 : 1;
    const order = [...known].sort((a, b) => sign * (a - b)).map(text);
    const distinct = [...new Set(order)];
    return values.map((value) => {
      if (!value) return null;
      const rank = ranked ? distinct.indexOf(text(value.mean)) + 1 : null;
      return { cell: value.cell, mean: value.mean, rank, ranks: distinct.length };
    });
  }

  private redraw(): void {
    const { page, choice } = this;
    const metric = page.metrics[choice.metric] as PageMetric;
    const rows = page.axes[choice.rows]?.labels ?? [];
    const columns = page.axes[choice.columns]?.labels ?? [];
    const places = columns.map((column) => this.column(metric, column, rows));
    const all = places.flat().flatMap((place) => (place ? [Math.abs(place.mean)] : []));
    const scale = scaleFor(metric.unit, most(all));
    const head = columns.map((column) => h("th", { scope: "col" }, column));
    const body = rows.map((row, index) => {
      const cells = places.map((column) => this.place(column[index] ?? null, metric, scale));
      return h("tr", {}, h("th", { scope: "row" }, row), ...cells);
    });
    const corner = `${metric.label}${scale.unit ? `, ${scale.unit}` : ""}`;
    this.table.replaceChildren(
      h(
        "table",
        { class: "board" },
        h("caption", { title: metric.doc }, corner),
        h("thead", {}, h("tr", {}, h("th", {}), ...head)),
        h("tbody", {}, ...body),
      ),
    );
    this.others.replaceChildren(...this.restrictions());
    this.notes.replaceChildren(...this.worst(rows, columns, places));
    this.open(choice.opened);
  }

  private place(place: Place | null, metric: PageMetric, scale: ReturnType<typeof scaleFor>) {
    if (!place) return h("td", { class: "none", title: "not measured" }, "–");
    const spread = this.page.cells[place.cell]?.metrics[this.choice.metric];
    const half = spread?.ci95 ?? null;
    const interval =
      half === null ? null : h("small", {}, ` ± ${margin(half, place.mean, scale, metric.digits)}`);
    const click = () => {
      this.choice.opened = this.choice.opened === place.cell ? null : place.cell;
      this.redraw();
    };
    const open = this.choice.opened === place.cell;
    const button = h(
      "button",
      { click, "aria-expanded": String(open) },
      shown(place.mean, scale, metric.digits),
      interval,
      place.rank === null ? null : h("sub", { title: "rank in the column" }, whole(place.rank)),
    );
    return h("td", { class: open ? "open" : "", style: colour(place) }, button);
  }

  /** Of each row, the columns in which it is the last, and what caused its stalls there, or else limited it. */
  private worst(rows: string[], columns: string[], places: (Place | null)[][]): HTMLElement[] {
    return rows.flatMap((row, index) => {
      const last = columns.flatMap((column, at) => {
        const place = places[at]?.[index];
        return place?.rank && place.ranks > 1 && place.rank === place.ranks
          ? [{ column, place }]
          : [];
      });
      if (!last.length) return [];
      const causes = this.causes(last.map(({ place }) => place.cell));
      const where = last.map(({ column }) => column).join(", ");
      const why = causes.length ? ` There: ${causes.join(", ")}.` : "";
      return [h("li", {}, h("strong", {}, row), ` is the last in ${where}.${why}`)];
    });
  }

  /** The greatest causes of the effects in these cells, by time; without effects, what limited flows. */
  private causes(cells: number[]): string[] {
    const trials = cells.flatMap((cell) => trialsOf(this.page, cell));
    const times = new Map<string, number>();
    const add = (cause: string, time: number) => times.set(cause, (times.get(cause) ?? 0) + time);
    for (const effect of trials.flatMap((trial) => trial.effects)) {
      if (["limit", "trial"].includes(effect.effect)) continue;
      for (const { cause, share } of effect.causes)
        add(cause, share * (effect.to_s - effect.from_s));
    }
    if (!times.size) {
      for (const limits of trials.flatMap((trial) => trial.limits)) {
        for (const [from, to, cause] of limits.spans) {
          add(this.page.causes[cause]?.cause ?? "unknown", to - from);
        }
      }
    }
    const sum = [...times.values()].reduce((a, b) => a + b, 0);
    const label = (name: string) =>
      this.page.causes.find(({ cause }) => cause === name)?.label ?? name;
    return [...times]
      .sort((a, b) => b[1] - a[1])
      .slice(0, CAUSES)
      .filter(([, time]) => time > 0)
      .map(([cause, time]) => `${label(cause)} ${plain((100 * time) / sum, 2)} %`);
  }

  private open(cell: number | null): void {
    const of = cell === null ? null : this.page.cells[cell];
    if (cell === null || !of) {
      this.opened.replaceChildren();
      return;
    }
    const list = trialsOf(this.page, cell).map((trial) => this.trial(trial));
    this.opened.replaceChildren(
      h("h3", {}, of.label),
      of.brief ? h("p", {}, `${of.brief}.`) : "",
      h("ul", {}, ...list),
      ...this.charts(cell, of),
    );
  }

  private trial(trial: PageTrial): HTMLElement {
    const metric = this.page.metrics[this.choice.metric] as PageMetric;
    const value = trial.metrics[this.choice.metric] ?? null;
    const scale = scaleFor(metric.unit, Math.abs(value ?? 0));
    const text = value === null ? "–" : `${shown(value, scale, metric.digits)} ${scale.unit}`;
    const href = address(trial.folder, trial.own_page ? "report.html" : "");
    const name = h("a", { href }, `repetition ${trial.repetition}`);
    const state = trial.valid ? "" : ` (not valid: ${trial.invalid_because ?? trial.state})`;
    return h("li", {}, name, `, seed ${trial.seed}: ${text.trim()}${state}`);
  }

  /** Rates against the capacity, and delays, of all repetitions. */
  private charts(cell: number, of: PageCell): (HTMLElement | string)[] {
    const all = runs(this.page, cell, "all");
    const series = this.page.series.map((info, index) => ({ info, index }));
    const named = (...names: string[]) =>
      names
        .map((name) => series.filter(({ info }) => plainName(info.name) === name))
        .find((found) => found.some(({ index }) => all.some((run) => run.points(index))));
    const rates = named("fairness.video_bps", "link.throughput_bps") ?? [];
    const tcp = named("fairness.tcp_bps") ?? [];
    const capacity = narrowest(series, all);
    const delays = widest(named("link.queue_delay_ms") ?? [], all);
    const latency = named("player.latency_ms") ?? [];
    const chart = (title: string, chosen: { info: PageSeries; index: number }[]) => {
      const lines = all.flatMap((run) => linesOf(chosen, run, of.label, all.length > 1));
      return lines.some((line) => line.values.some((value) => value !== null))
        ? figure(title, lines)
        : "";
    };
    return [
      chart("Rate (grey: capacity)", [...rates, ...tcp, ...capacity]),
      chart("Queueing delay", delays),
      chart("Latency", latency),
    ];
  }
}

/** Of `link.access.down.rate_bps` what it is of any link: `link.rate_bps`. */
function plainName(name: string): string {
  const parts = name.split(".");
  return `${parts[0]}.${parts.at(-1)}`;
}

type Numbered = { info: PageSeries; index: number };

/** The rate of the link with the least: the capacity. */
function narrowest(series: Numbered[], all: Run[]): Numbered[] {
  const bounds = series.filter(
    ({ info }) => plainName(info.name) === "link.rate_bps" && info.direction !== "up",
  );
  return extreme(bounds, all, -1);
}

/** The series with the greatest mean. */
function widest(series: Numbered[], all: Run[]): Numbered[] {
  return extreme(series, all, 1);
}

function extreme(series: Numbered[], all: Run[], sign: number): Numbered[] {
  const mean = ({ index }: Numbered) => {
    const values = all.flatMap((run) =>
      (run.points(index) ?? []).filter((value) => value !== null),
    );
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };
  const known = series.flatMap((one) => {
    const value = mean(one);
    return value === null ? [] : [{ one, value }];
  });
  const first = known.sort((a, b) => sign * (b.value - a.value))[0];
  return first ? [first.one] : [];
}

function linesOf(chosen: Numbered[], run: Run, cell: string, faint: boolean): Line[] {
  return chosen.flatMap(({ index, info }, place) => {
    const values = run.points(index);
    if (!values) return [];
    const label = `${cell}: ${info.label}`;
    // In sight as a whole, unlike in the figures below: it is what the rates are compared with.
    const isBound = info.style === "bound";
    const look = isBound ? { colour: "var(--bound)", dash: "" } : lookOf(place);
    const style = isBound ? "step" : "line";
    return [{ label, ...look, style, faint: faint && !isBound, bin_s: run.bin_s, values }];
  });
}

function figure(title: string, lines: Line[]): HTMLElement {
  const width = 860;
  const end = Math.max(...lines.map((line) => line.values.length * line.bin_s));
  const unit = title === "Queueing delay" || title === "Latency" ? "ms" : "bit/s";
  const bands: Band[] = [];
  const spec = { unit, lines, bands, x: [0, end] as [number, number], width, height: HEIGHT };
  const label = `${title} over time`;
  const svg = s("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": label });
  svg.append(draw({ ...spec, floating: false }).group);
  return h("figure", {}, h("figcaption", {}, h("strong", {}, title)), svg);
}

function trialsOf(page: Page, cell: number): PageTrial[] {
  return (page.cells[cell]?.trials ?? []).flatMap((index) => page.trials[index] ?? []);
}

/** From blue, the best, over nothing to orange, the worst: colours that the colour-blind can distinguish as well. */
function colour({ rank, ranks }: Place): string | null {
  if (rank === null || ranks < 2) return null;
  const at = (rank - 1) / (ranks - 1);
  const [hue, share] = at <= 0.5 ? ["--c0", 1 - 2 * at] : ["--c1", 2 * at - 1];
  return `background:color-mix(in srgb, var(${hue}) ${Math.round(38 * share)}%, var(--paper))`;
}

function select(name: string, options: string[], chosen: number, change: (index: number) => void) {
  const items = options.map((text, index) =>
    h("option", { value: index, selected: index === chosen }, text),
  );
  const box = h("select", {}, ...items);
  box.addEventListener("change", () => change(Number(box.value)));
  return h("label", {}, `${name} `, box, " ");
}
