// Distributions: how often each value occurred in the time shown, and each trial as a point over two metrics.

import { type Look, type Repetition, runs } from "./data";
import { h, s } from "./dom";
import { plain } from "./format";
import type { Page, PageSpread } from "./generated/page";
import { canvas, figure, first, Plot, range, select, shares } from "./plot";

/** What the reader chose to see of the page. */
export interface Sight {
  /** The cells, each with its look. */
  cells: { cell: number; look: Look }[];
  repetition: Repetition;
  /** The stretch of time, in seconds. */
  time: [number, number];
}

/** Names of series whose distribution is worth seeing, the best first. */
const SERIES = [/queue_delay/, /latency/, /delay/, /rtt/, /bps/];
/** Names of metrics for the axes at first, the best first. */
const ACROSS = [/down.*delay_p95_ms$/, /delay_p95_ms$/, /latency_p95_ms$/, /rtt_mean_ms$/];
const UP = [/goodput_mean_bps$/, /down.*throughput_mean_bps$/, /throughput_mean_bps$/, /_bps$/];

/** The two figures; they are drawn again when the view changes. */
export class Distribution {
  readonly element: HTMLElement;
  private readonly shares = canvas("Share of the time at or below each value");
  private readonly scatter = canvas("Each trial as a point over two metrics");
  private readonly hint = h("span", { class: "note" });
  private readonly series: number[];
  private readonly metrics: number[];
  private readonly choice: { series: number; across: number; up: number };
  private sight: Sight | null = null;

  constructor(private readonly page: Page) {
    const isMain = (style: string) => style === "line" || style === "step";
    this.series = page.series.flatMap(({ style }, index) => (isMain(style) ? [index] : []));
    this.metrics = page.metrics.flatMap((_, index) =>
      page.trials.some((trial) => typeof trial.metrics[index] === "number") ? [index] : [],
    );
    const series = this.series.map((index) => page.series[index]?.name ?? "");
    const metrics = this.metrics.map((index) => page.metrics[index]?.name ?? "");
    this.choice = {
      series: this.series[first(series, SERIES)] ?? 0,
      across: this.metrics[first(metrics, ACROSS)] ?? 0,
      up: this.metrics[first(metrics, UP)] ?? 0,
    };
    const some = this.series.length > 0 && page.trials.some((trial) => trial.bin_s > 0);
    this.element = h(
      "div",
      { class: "distributions" },
      some && figure("Distribution over time", this.shares, this.seriesChoice()),
      this.metrics.length > 1 && figure("Trials", this.scatter, ...this.metricChoice(), this.hint),
    );
  }

  /** Draws what is seen. */
  draw(sight: Sight): void {
    this.sight = sight;
    this.drawShares(sight);
    this.drawScatter(sight);
  }

  private redraw(): void {
    if (this.sight) this.draw(this.sight);
  }

  private seriesChoice(): HTMLElement {
    const words = this.series.map((index) => {
      const info = this.page.series[index];
      return [info?.label, info?.instance, info?.direction].filter((word) => !!word).join(", ");
    });
    return select("of", words, this.series.indexOf(this.choice.series), (at) => {
      this.choice.series = this.series[at] ?? 0;
      this.redraw();
    });
  }

  private metricChoice(): HTMLElement[] {
    const words = this.metrics.map((index) => this.page.metrics[index]?.label ?? "");
    const one = (name: string, key: "across" | "up") =>
      select(name, words, this.metrics.indexOf(this.choice[key]), (at) => {
        this.choice[key] = this.metrics[at] ?? 0;
        this.redraw();
      });
    return [one("", "up"), one("over", "across")];
  }

  /**
   * The cumulative distribution of a series: the share of the bins in sight with at most each value. That of a trial that
   * is not valid is faint, as in the other charts.
   */
  private drawShares({ cells, repetition, time }: Sight): void {
    const of = repetition === "mean" ? "all" : repetition;
    const lines = cells.flatMap(({ cell, look }) => {
      const all = runs(this.page, cell, of);
      const values = all.flatMap(({ bin_s, points }) => {
        const [from, to] = time.map((t) => Math.round(t / bin_s));
        return (points(this.choice.series) ?? []).slice(from, to).filter((value) => value !== null);
      });
      const valid = all.every((run) => run.valid);
      return values.length ? [{ look, valid, values: values.sort((a, b) => a - b) }] : [];
    });
    const unit = this.page.series[this.choice.series]?.unit ?? "";
    const ends = lines.flatMap(({ values }) => [values[0] ?? 0, values.at(-1) ?? 0]);
    const plot = new Plot(this.shares, range(ends), unit, [0, 1], "ratio");
    for (const { look, valid, values } of lines) {
      const opacity = valid ? 1 : 0.35;
      plot.add(
        s(
          "path",
          {
            d: shares(plot, values),
            style: `fill:none;stroke:${look.colour};stroke-width:1.6;stroke-opacity:${opacity}`,
            "stroke-dasharray": look.dash || null,
          },
          valid ? null : s("title", {}, "not valid"),
        ),
      );
    }
  }

  /** Each valid trial as a point; the mean of several as a ring with the intervals of both metrics. */
  private drawScatter({ cells }: Sight): void {
    const { across, up } = this.choice;
    const [x, y] = [this.page.metrics[across], this.page.metrics[up]];
    const points = cells.flatMap(({ cell, look }) =>
      (this.page.cells[cell]?.trials ?? []).flatMap((index) => {
        const trial = this.page.trials[index];
        const [a, b] = [trial?.metrics[across], trial?.metrics[up]];
        const known = trial?.valid && typeof a === "number" && typeof b === "number";
        const name = `${this.page.cells[cell]?.label ?? ""} #${trial?.repetition}`;
        return known ? [{ look, a, b, name }] : [];
      }),
    );
    const means = cells.flatMap(({ cell, look }) => {
      const [a, b] = [across, up].map((index) => this.page.cells[cell]?.metrics[index]);
      return a && b && a.n > 1 ? [{ a, b, look }] : [];
    });
    const xs = range([...points.map(({ a }) => a), ...means.flatMap(({ a }) => ends(a))]);
    const ys = range([...points.map(({ b }) => b), ...means.flatMap(({ b }) => ends(b))]);
    const plot = new Plot(this.scatter, xs, x?.unit ?? "", ys, y?.unit ?? "");
    for (const { look, a, b, name } of points) {
      const at = { cx: plot.x(a), cy: plot.y(b), r: 3.5 };
      const style = `fill:${look.colour};stroke:var(--paper);stroke-width:1`;
      plot.add(s("circle", { ...at, style }, s("title", {}, name)));
    }
    for (const { a, b, look } of means) plot.add(cross(plot, a, b, look));
    const better = [word(y?.better, "up", "down"), word(x?.better, "right", "left")];
    const known = better.filter((words) => words);
    this.hint.textContent = known.length ? `better: ${known.join(" and ")}` : "";
  }
}

/** Where the arm of a mean begins and ends; only the mean if its interval is not known. */
function ends({ mean, ci95 }: PageSpread): number[] {
  return ci95 === null ? [mean] : [mean - ci95, mean + ci95];
}

/** The mean of a cell, with the confidence interval of each metric, if it is known, as an arm. */
function cross(plot: Plot, across: PageSpread, up: PageSpread, look: Look): SVGGElement {
  const style = `fill:none;stroke:${look.colour};stroke-width:1.6`;
  const [x, y] = [plot.x(across.mean), plot.y(up.mean)];
  const [x1, x2] = ends(across).map((value) => plot.x(value));
  const [y1, y2] = ends(up).map((value) => plot.y(value));
  const told = `mean: ${plain(up.mean, 3)} over ${plain(across.mean, 3)}`;
  return s(
    "g",
    { style },
    s("title", {}, told),
    s("circle", { cx: x, cy: y, r: 6 }),
    x2 !== undefined && s("line", { x1, x2, y1: y, y2: y }),
    y2 !== undefined && s("line", { x1: x, x2: x, y1, y2 }),
  );
}

function word(better: string | undefined, higher: string, lower: string): string {
  if (better === "higher") return higher;
  return better === "lower" ? lower : "";
}
