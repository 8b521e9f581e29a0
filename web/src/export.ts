// Figures as SVG files that stand alone: title, axes, legend, light colours, no CSS variable left.

import { type Chart, draw, type Spec } from "./chart";
import { h, s } from "./dom";

/** A figure to save. */
export interface Saved {
  title: string;
  /** What the faint lines are. */
  note: string;
  /** Its own legend, where it shows several series of each cell. */
  keys?: Key[];
  spec: Spec;
}

/** An entry of the legend. */
export interface Key {
  label: string;
  colour: string;
  dash: string;
}

const WIDTH = 900;
const PAD = 20;
const LINE = 20;

/** One SVG document of several figures, one below the other. */
export function standalone(heading: string, keys: Key[], figures: Saved[]): string {
  const parts: SVGElement[] = [];
  let y = PAD + 10;
  const text = (x: number, content: string, size: number, style: string) =>
    s("text", { x, y, "font-size": size, style }, content);
  parts.push(text(PAD, heading, 16, "fill:var(--ink);font-weight:600"));
  y += 10;
  const legend = (of: Key[]) => {
    const [entries, end] = placed(of, y);
    parts.push(...entries);
    y = end;
  };
  legend(keys);
  for (const { title, note, keys: own, spec } of figures) {
    y += LINE + 16;
    const heading = text(PAD, title, 13, "fill:var(--ink);font-weight:600");
    const faint = "fill:var(--muted);font-weight:400";
    if (note) heading.append(s("tspan", { dx: 12, "font-size": 11, style: faint }, note));
    parts.push(heading);
    legend(own ?? []);
    y += 8;
    const chart: Chart = draw({ ...spec, width: WIDTH - 2 * PAD });
    chart.group.setAttribute("transform", `translate(${PAD} ${y})`);
    parts.push(chart.group, axisNames(chart, y));
    y += spec.height;
  }
  const height = y + PAD;
  const root = s("svg", {
    xmlns: "http://www.w3.org/2000/svg",
    width: WIDTH,
    height,
    viewBox: `0 0 ${WIDTH} ${height}`,
    "font-family": "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif",
  });
  root.append(
    s("title", {}, heading),
    s("rect", { width: WIDTH, height, style: "fill:var(--paper)" }),
  );
  root.append(...parts);
  return resolve(new XMLSerializer().serializeToString(root));
}

/** Entries of a legend below `y`, in rows, and where the last row is. */
function placed(keys: Key[], y: number): [SVGElement[], number] {
  const parts: SVGElement[] = [];
  let [x, row] = [PAD, y];
  for (const { label, colour, dash } of keys) {
    const width = 44 + label.length * 7.2;
    if (x === PAD || x + width > WIDTH - PAD) {
      x = PAD;
      row += LINE;
    }
    const style = `stroke:${colour};stroke-width:2`;
    const line = { x1: x, x2: x + 24, y1: row - 4, y2: row - 4, "stroke-dasharray": dash || null };
    const text = { x: x + 30, y: row, "font-size": 12, style: "fill:var(--ink)" };
    parts.push(s("line", { ...line, style }), s("text", text, label));
    x += width;
  }
  return [parts, row];
}

function axisNames(chart: Chart, y: number): SVGElement {
  const name = { x: PAD + (chart.left + chart.right) / 2, y: y + chart.bottom + 30 };
  const style = "fill:var(--muted)";
  return s(
    "text",
    { ...name, "font-size": 11, "text-anchor": "middle", style },
    "time since the trial began, s",
  );
}

/** Writes the light theme's colours in place of the variables. */
function resolve(svg: string): string {
  const probe = h("div", { "data-theme": "light", hidden: true });
  document.body.append(probe);
  const light = getComputedStyle(probe);
  const resolved = svg.replace(/var\((--[\w-]+)\)/g, (_, name: string) => {
    return light.getPropertyValue(name).trim();
  });
  probe.remove();
  return resolved;
}

/** Hands a text to the reader as a file. */
export function save(name: string, content: string): void {
  const url = URL.createObjectURL(new Blob([content], { type: "image/svg+xml" }));
  const link = h("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
