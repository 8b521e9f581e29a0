// The trials themselves: the distribution of a metric in each folder, and one metric over another.

import { h, s } from "../dom";
import { count } from "../format";
import type { Difference, PageMetric, Sample } from "../generated/diff";
import { canvas, figure, first, Plot, range, select, shares } from "../plot";
import { letter, look } from "./letter";

/** The metrics that the plots begin with, the first that was measured: a delay across, a throughput up. */
const ACROSS = [/^media\..*latency_p95_ms$/, /^link\..*queue_delay_p95_ms$/, /_ms$/];
const UP = [/^flow\.goodput_mean_bps$/, /^video\.bitrate_mean_bps$/, /_bps$/];

/** The section; null if no trial is valid. */
export function plots(all: Difference): Plots | null {
  const metrics = all.metrics.filter((metric) =>
    all.samples.some((sample) => sample.values[metric.name] !== undefined),
  );
  return metrics.length ? new Plots(all, metrics) : null;
}

/** Two figures and what they show. They are as wide as the page has room: [`redraw`] when that is known. */
export class Plots {
  readonly element: HTMLElement;
  private readonly choice: { across: number; up: number; cell: string };
  private readonly shares = canvas("Share of the trials at or below each value");
  private readonly scatter = canvas("Each trial as a point over two metrics");

  constructor(
    private readonly all: Difference,
    private readonly metrics: PageMetric[],
  ) {
    const names = metrics.map((metric) => metric.name);
    this.choice = { across: first(names, ACROSS), up: first(names, UP), cell: "" };
    const legend = all.folders.map((_, folder) => h("span", { class: "key" }, letter(all, folder)));
    const trials = count(all.samples.length, "valid trial");
    this.element = h(
      "section",
      { id: "trials" },
      h("h2", {}, "The trials"),
      h(
        "p",
        { class: "hint" },
        `Each step and each point is one of ${trials}. The ring is the mean, the ellipse one standard deviation.`,
      ),
      h("div", { class: "legend" }, ...legend, ...this.cells()),
      h(
        "div",
        { class: "distributions" },
        figure("Share of trials at or below", this.shares, this.metric("", "across")),
        figure("Trials", this.scatter, this.metric("", "up"), this.metric("over", "across")),
      ),
    );
    window.addEventListener("resize", () => this.redraw());
  }

  /** The choice of a metric. Both figures show the same across, so that its other choice follows. */
  private metric(name: string, key: "across" | "up"): HTMLElement {
    const labels = this.metrics.map((metric) => metric.label);
    const box = select(name, labels, this.choice[key], (at) => {
      this.choice[key] = at;
      for (const other of this.element.querySelectorAll<HTMLSelectElement>(`.${key} select`))
        other.selectedIndex = at;
      this.redraw();
    });
    box.classList.add(key);
    return box;
  }

  /** The choice of a cell, if there are several. */
  private cells(): HTMLElement[] {
    const labels = [...new Set(this.all.samples.map((sample) => sample.cell))];
    if (labels.length < 2) return [];
    const change = (at: number) => {
      this.choice.cell = labels[at - 1] ?? "";
      this.redraw();
    };
    return [select("cell", ["all", ...labels], 0, change)];
  }

  /** The samples of each folder that have all of these metrics. */
  private samples(...metrics: string[]): Sample[][] {
    const { cell } = this.choice;
    const fits = (sample: Sample) =>
      (!cell || sample.cell === cell) &&
      metrics.every((metric) => sample.values[metric] !== undefined);
    return this.all.folders.map((_, folder) =>
      this.all.samples.filter((sample) => sample.folder === folder && fits(sample)),
    );
  }

  /** Draws both figures. */
  redraw(): void {
    const [across, up] = [this.metrics[this.choice.across], this.metrics[this.choice.up]];
    if (!across || !up) return;
    this.drawShares(across);
    this.drawScatter(across, up);
  }

  private drawShares({ name, unit }: PageMetric): void {
    const groups = this.samples(name).map((group) =>
      group.map((sample) => sample.values[name] ?? 0).sort((a, b) => a - b),
    );
    const [least, most] = range(groups.flat());
    const plot = new Plot(this.shares, [least, most], unit, [0, 1], "ratio");
    groups.forEach((values, folder) => {
      if (!values.length) return;
      const { colour, dash } = look(folder);
      const d = shares(plot, values);
      const style = `fill:none;stroke:${colour};stroke-width:2`;
      plot.add(s("path", { d, style, "stroke-dasharray": dash || null, class: "cdf" }));
    });
  }

  private drawScatter(across: PageMetric, up: PageMetric): void {
    const groups = this.samples(across.name, up.name).map((group) =>
      group.map(({ values }): [number, number] => [values[across.name] ?? 0, values[up.name] ?? 0]),
    );
    const [xs, ys] = [0, 1].map((side) =>
      range(groups.flat().map((point) => point[side as 0 | 1])),
    ) as [[number, number], [number, number]];
    const plot = new Plot(this.scatter, xs, across.unit, ys, up.unit);
    groups.forEach((points, folder) => {
      if (!points.length) return;
      const { colour } = look(folder);
      for (const [x, y] of points) {
        const place = { cx: plot.x(x).toFixed(1), cy: plot.y(y).toFixed(1), r: 2.6 };
        plot.add(s("circle", { ...place, style: `fill:${colour};fill-opacity:.55` }));
      }
      for (const part of ellipse(points, plot, colour)) plot.add(part);
    });
  }
}

/** The mean of points, and the ellipse of one standard deviation, from the eigenvectors of their covariance. */
function ellipse(points: [number, number][], plot: Plot, colour: string): SVGElement[] {
  const pixels = points.map(([x, y]): [number, number] => [plot.x(x), plot.y(y)]);
  const n = pixels.length;
  const mean = (of: (point: [number, number]) => number) =>
    pixels.reduce((sum, it) => sum + of(it), 0) / n;
  const [cx, cy] = [mean(([x]) => x), mean(([, y]) => y)];
  const style = `fill:none;stroke:${colour};stroke-width:1.6`;
  const centre = s("circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: 5, style });
  if (n < 3) return [centre];
  const scale = n / (n - 1);
  const xx = mean(([x]) => (x - cx) ** 2) * scale;
  const yy = mean(([, y]) => (y - cy) ** 2) * scale;
  const xy = mean(([x, y]) => (x - cx) * (y - cy)) * scale;
  const root = Math.sqrt(((xx - yy) / 2) ** 2 + xy * xy);
  const [major, minor] = [(xx + yy) / 2 + root, Math.max(0, (xx + yy) / 2 - root)];
  const angle = (Math.atan2(2 * xy, xx - yy) / 2) * (180 / Math.PI);
  const place = { cx: cx.toFixed(1), cy: cy.toFixed(1) };
  const shape = s("ellipse", {
    ...place,
    rx: Math.sqrt(major).toFixed(1),
    ry: Math.sqrt(minor).toFixed(1),
    transform: `rotate(${angle.toFixed(1)} ${place.cx} ${place.cy})`,
    style: `${style};stroke-opacity:.7`,
  });
  return [shape, centre];
}
