// A plot of values over values, and what is around it.

import { h, s } from "./dom";
import { type Scale, scaleFor, ticks, tickText } from "./format";

const HEIGHT = 260;
const MARGIN = { left: 54, right: 14, top: 18, bottom: 34 };

/** A plot with axes from one value to another. */
export class Plot {
  private readonly across: Scale;
  private readonly width: number;

  constructor(
    private readonly svg: SVGSVGElement,
    readonly xs: [number, number],
    xUnit: string,
    private readonly ys: [number, number],
    yUnit: string,
  ) {
    this.width = svg.parentElement?.clientWidth || 420;
    this.across = scaleFor(xUnit, greatest(xs));
    svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    svg.setAttribute("height", String(HEIGHT));
    svg.replaceChildren(this.grid(scaleFor(yUnit, greatest(ys))));
  }

  x(value: number): number {
    const inner = this.width - MARGIN.left - MARGIN.right;
    return MARGIN.left + ((value - this.xs[0]) / (this.xs[1] - this.xs[0])) * inner;
  }

  y(value: number): number {
    const inner = HEIGHT - MARGIN.top - MARGIN.bottom;
    return HEIGHT - MARGIN.bottom - ((value - this.ys[0]) / (this.ys[1] - this.ys[0])) * inner;
  }

  add(part: SVGElement): void {
    this.svg.append(part);
  }

  private grid(up: Scale): SVGGElement {
    const group = s("g", { "font-size": 11, style: "fill:var(--muted)" });
    const [left, right] = [MARGIN.left, this.width - MARGIN.right];
    const bottom = HEIGHT - MARGIN.bottom;
    const rule = "stroke:var(--rule);stroke-width:1";
    const rows = ticks(this.ys[0] / up.factor, this.ys[1] / up.factor, 4);
    for (const tick of rows) {
      const y = Math.round(this.y(tick * up.factor)) + 0.5;
      group.append(s("line", { x1: left, x2: right, y1: y, y2: y, style: rule }));
      const text = tickText(tick, rows);
      group.append(s("text", { x: left - 8, y: y + 3.5, "text-anchor": "end" }, text));
    }
    const columns = ticks(
      this.xs[0] / this.across.factor,
      this.xs[1] / this.across.factor,
      Math.max(3, (right - left) / 90),
    );
    for (const tick of columns) {
      const x = Math.round(this.x(tick * this.across.factor)) + 0.5;
      group.append(s("line", { x1: x, x2: x, y1: bottom, y2: bottom + 4, style: rule }));
      const text = tickText(tick, columns);
      group.append(s("text", { x, y: bottom + 16, "text-anchor": "middle" }, text));
    }
    const unit = { x: right, y: bottom + 30, "text-anchor": "end" };
    group.append(s("text", unit, this.across.unit));
    group.append(s("text", { x: left - 8, y: 9, "text-anchor": "end" }, up.unit));
    const axis = "stroke:var(--axis);stroke-width:1";
    group.append(s("line", { x1: left, x2: right, y1: bottom, y2: bottom, style: axis }));
    return group;
  }
}

/** The greatest distance from zero. */
function greatest([from, to]: [number, number]): number {
  return Math.max(Math.abs(from), Math.abs(to));
}

/** From the least to the greatest value, with some room on both sides; never below zero if all are above. */
export function range(values: number[]): [number, number] {
  if (!values.length) return [0, 1];
  const [least, most] = values.reduce(
    ([a, b], value) => [Math.min(a, value), Math.max(b, value)],
    [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY],
  );
  const more = (most - least) * 0.06 || Math.abs(most) * 0.06 || 1;
  return [least >= 0 ? Math.max(0, least - more) : least - more, most + more];
}

/** The path of a cumulative distribution over the plot's whole width: the share of the sorted values up to each. */
export function shares(plot: Plot, values: number[]): string {
  const [least, most] = plot.xs.map((value) => plot.x(value).toFixed(1));
  const steps = values.map((value, index) => {
    const y = plot.y((index + 1) / values.length).toFixed(1);
    return `H${plot.x(value).toFixed(1)}V${y}`;
  });
  return `M${least} ${plot.y(0)}${steps.join("")}H${most}`;
}

/** The place of the first name that fits the best pattern that fits any. */
export function first(names: string[], patterns: RegExp[]): number {
  const places = patterns.map((pattern) => names.findIndex((name) => pattern.test(name)));
  return places.find((place) => place >= 0) ?? 0;
}

/** A figure with its title, and what is chosen in it. */
export function figure(title: string, svg: SVGSVGElement, ...more: HTMLElement[]): HTMLElement {
  const caption = h("figcaption", {}, h("strong", {}, title), ...more);
  return h("figure", {}, caption, h("div", { class: "plot" }, svg));
}

/** What a plot is drawn in. */
export function canvas(label: string): SVGSVGElement {
  return s("svg", { role: "img", "aria-label": label });
}

/** A choice of one of several; it reports the place of what was chosen. */
export function select(
  name: string,
  options: string[],
  chosen: number,
  change: (index: number) => void,
): HTMLElement {
  const items = options.map((text, index) =>
    h("option", { value: index, selected: index === chosen }, text),
  );
  const box = h("select", {}, ...items);
  box.addEventListener("change", () => change(Number(box.value)));
  return h("label", { class: "note" }, name ? `${name} ` : "", box);
}
