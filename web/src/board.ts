// A board of two axes: one value for each combination, coloured by its rank within the column. A cell opens its trials.

import { causes } from "./causes";
import { trialsOf } from "./data";
import { h, refocused } from "./dom";
import { margin, most, scaleFor, shown, whole } from "./format";
import type { Page, PageMetric, PageTrial } from "./generated/page";
import { address } from "./many";
import { alikeLinks, LEAST, type Ranking, ranking } from "./rank";
import { charts } from "./rates";

/** What is shown at first where it was measured: of pairs of flows, what the first one has next to the second. */
const PAIRS = "harm.share_ratio";

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
  /** From 1, the best; values that do not differ share a rank. `null`: the column has no ranks. */
  rank: number | null;
  /** The last rank of the column. */
  last: number;
}

interface Column {
  /** By row. */
  places: (Place | null)[];
  /** Why it has no ranks; null if it has. */
  because: string | null;
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
  private readonly unranked = h("p", { class: "hint" });
  private readonly notes = h("ul", { class: "notes" });
  private readonly opened = h("div", { class: "opened", "aria-live": "polite" });
  private readonly others = h("span", {});

  constructor(
    private readonly page: Page,
    private readonly metrics: number[],
  ) {
    // Rows are of the first axis. Of the others, the one with most labels shows most at once.
    const varied = page.axes.flatMap((axis, index) => (axis.labels.length > 1 ? [index] : []));
    const labels = (index: number) => page.axes[index]?.labels.length ?? 0;
    const widest = varied.slice(1).sort((a, b) => labels(b) - labels(a))[0];
    this.choice = {
      metric: atFirst(page.metrics, metrics),
      rows: varied[0] ?? 0,
      columns: widest ?? 0,
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
        `One value for each combination: the mean over valid repetitions ± half the 95 % confidence interval. From ${LEAST} repetitions on, the small number is its rank in the column, the best first; blue is better, orange worse. Values whose intervals overlap share a rank. Click a value to open its trials.`,
      ),
      this.controls(),
      this.table,
      this.unranked,
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
          refocused(this.element, () => {
            this.element.querySelector(".controls")?.replaceWith(this.controls());
          });
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

  private column(metric: PageMetric, column: string, rows: string[]): Column {
    const { page, choice } = this;
    const found = rows.map((row) => {
      const cell = this.cellAt(row, column);
      const spread = cell === null ? null : page.cells[cell]?.metrics[choice.metric];
      return cell === null || !spread ? null : { cell, spread };
    });
    const known = found.flatMap((value) => value ?? []);
    const scale = scaleFor(metric.unit, most(known.map(({ spread }) => Math.abs(spread.mean))));
    const isFair = alikeLinks(
      page,
      known.map(({ cell }) => cell),
    );
    const spreads = found.map((value) => value?.spread ?? null);
    const ranked: Ranking = isFair
      ? ranking(metric, spreads, scale)
      : { because: "the links of its rows differ" };
    const [ranks, last] = "ranks" in ranked ? [ranked.ranks, ranked.last] : [[], 0];
    const places = found.map((value, row) =>
      value ? { cell: value.cell, mean: value.spread.mean, rank: ranks[row] ?? null, last } : null,
    );
    return { places, because: "because" in ranked ? ranked.because : null };
  }

  private redraw(): void {
    refocused(this.element, () => this.draw());
  }

  private draw(): void {
    const { page, choice } = this;
    const metric = page.metrics[choice.metric] as PageMetric;
    const rows = page.axes[choice.rows]?.labels ?? [];
    const columns = page.axes[choice.columns]?.labels ?? [];
    const made = columns.map((column) => this.column(metric, column, rows));
    const places = made.map((column) => column.places);
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
    const told = [unranked(columns, made), few(rows, columns, made)];
    this.unranked.textContent = told.filter((text) => text !== "").join(" ");
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
      { click, "aria-expanded": String(open), "data-focus": `cell ${place.cell}` },
      shown(place.mean, scale, metric.digits),
      interval,
      place.rank === null ? null : h("sub", { title: "rank in the column" }, whole(place.rank)),
    );
    return h("td", { class: open ? "open" : "", style: colour(place) }, button);
  }

  /** Of each row, the columns in which it is the last, alone or with others, and the causes there. */
  private worst(rows: string[], columns: string[], places: (Place | null)[][]): HTMLElement[] {
    return rows.flatMap((row, index) => {
      const last = columns.flatMap((column, at) => {
        const place = places[at]?.[index];
        if (!place?.rank || place.rank < place.last) return [];
        const alone = places[at]?.filter((other) => other?.rank === place.rank).length === 1;
        return [{ column, cell: place.cell, alone }];
      });
      if (!last.length) return [];
      const where = [true, false].flatMap((alone) => {
        const some = last.filter((one) => one.alone === alone).map(({ column }) => column);
        return some.length ? `${alone ? "the last" : "among the last"} in ${some.join(", ")}` : [];
      });
      const cells = last.map(({ cell }) => cell);
      const why = causes(this.page, cells);
      const text = ` is ${where.join(", and ")}.${why ? ` ${why}` : ""}`;
      return [h("li", {}, h("strong", {}, row), text)];
    });
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
      ...charts(this.page, cell, of.label),
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
}

/** The metric that is shown at first, of those that were measured. */
export function atFirst(all: PageMetric[], measured: number[]): number {
  const pairs = measured.find((index) => all[index]?.name === PAIRS);
  const judged = measured.find((index) => all[index]?.main && all[index]?.better !== "neither");
  return pairs ?? judged ?? measured[0] ?? 0;
}

/** Which columns have no ranks, and why. */
function unranked(columns: string[], made: Column[]): string {
  const reasons = new Map<string, string[]>();
  made.forEach(({ places, because }, at) => {
    if (because === null || places.every((place) => place === null)) return;
    reasons.set(because, [...(reasons.get(because) ?? []), columns[at] ?? ""]);
  });
  const measured = made.filter(({ places }) => places.some((place) => place !== null));
  return [...reasons]
    .map(([because, some]) => {
      const where = some.length < measured.length ? ` in ${some.join(", ")}` : "";
      return `No ranks${where}: ${because}.`;
    })
    .join(" ");
}

/** Of columns with ranks, the values that have none: of too few repetitions. */
function few(rows: string[], columns: string[], made: Column[]): string {
  const without = rows.flatMap((row, at) => {
    const some = columns.filter((_, column) => {
      const { because, places } = made[column] as Column;
      return because === null && places[at]?.rank === null;
    });
    return some.length ? `${row} in ${some.join(", ")}` : [];
  });
  const list = without.join("; ");
  return list && `Without a rank, as valid repetitions are fewer than ${LEAST}: ${list}.`;
}

/** From blue, the best, over nothing to orange, the worst: colours that the colour-blind can distinguish as well. */
function colour({ rank, last }: Place): string | null {
  if (rank === null) return null;
  const at = (rank - 1) / (last - 1);
  const [hue, share] = at <= 0.5 ? ["--c0", 1 - 2 * at] : ["--c1", 2 * at - 1];
  return `background:color-mix(in srgb, var(${hue}) ${Math.round(38 * share)}%, var(--paper))`;
}

function select(name: string, options: string[], chosen: number, change: (index: number) => void) {
  const items = options.map((text, index) =>
    h("option", { value: index, selected: index === chosen }, text),
  );
  const box = h("select", { "data-focus": `select ${name}` }, ...items);
  box.addEventListener("change", () => change(Number(box.value)));
  return h("label", {}, `${name} `, box, " ");
}
