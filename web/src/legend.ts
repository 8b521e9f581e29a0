// Legend, choice of cells and repetition, zoom.

import type { Look, Repetition } from "./data";
import { h, s } from "./dom";
import type { View } from "./figures";
import { count, whole } from "./format";
import type { Page } from "./generated/page";

/** The controls above the figures. */
export interface Controls {
  element: HTMLElement;
  /** Brings them in line with the view. */
  update: () => void;
  /** Shows the time under the cursor. */
  time: (t: number | null) => void;
}

interface Actions {
  changed: () => void;
  zoom: (factor: number) => void;
  save: () => void;
}

/** Makes the controls; they change `view` and call back. */
export function controls(page: Page, looks: Look[], view: View, actions: Actions): Controls {
  const updates: (() => void)[] = [];
  const legend = h("div", { class: "legend", role: "group", "aria-label": "cells shown" });
  page.cells.forEach((_, cell) => {
    const button = legendButton(page, cell, looks[cell] as Look, view, actions.changed);
    updates.push(() => button.setAttribute("aria-pressed", String(view.shown.has(cell))));
    legend.append(button);
  });
  const clock = h("output", { class: "clock" });
  const reset = h(
    "button",
    { click: () => actions.zoom(0), title: "Show the whole trial (0)" },
    "All",
  );
  updates.push(() => reset.toggleAttribute("disabled", view.zoom === null));
  const tools = h(
    "div",
    { class: "tools" },
    repetitionChoice(page, view, actions.changed),
    h(
      "span",
      { class: "buttons", role: "group", "aria-label": "zoom" },
      h(
        "button",
        { click: () => actions.zoom(2), title: "Zoom out (−)", "aria-label": "zoom out" },
        "−",
      ),
      h(
        "button",
        { click: () => actions.zoom(0.5), title: "Zoom in (+)", "aria-label": "zoom in" },
        "+",
      ),
      reset,
    ),
    h("button", { click: actions.save, title: "Save all charts as one SVG" }, "Save SVG"),
    clock,
  );
  const element = h("div", { class: "controls screen" });
  const chips = axisChips(page, view, actions.changed, updates);
  if (chips) element.append(chips);
  element.append(h("div", { class: "bar" }, legend, tools));
  return {
    element: h("div", { class: "controls-box" }, element, printLegend(page, looks, view, updates)),
    update: () => {
      for (const update of updates) update();
    },
    time: (t) => {
      clock.textContent = t === null ? "" : `${t.toFixed(1)} s`;
    },
  };
}

/** A piece of a cell's line. */
export function sample(look: Look): SVGSVGElement {
  const line = { x1: 0, x2: 26, y1: 5, y2: 5, "stroke-dasharray": look.dash || null };
  const style = `stroke:${look.colour};stroke-width:2.5`;
  return s("svg", { width: 26, height: 10, "aria-hidden": "true" }, s("line", { ...line, style }));
}

function legendButton(page: Page, cell: number, look: Look, view: View, changed: () => void) {
  const of = page.cells[cell];
  const trials = of?.trials.map((index) => page.trials[index]) ?? [];
  const skipped = trials.filter((trial) => trial?.state === "skipped").length;
  const invalid = trials.filter((trial) => !trial?.valid).length - skipped;
  const ofAll = (count: number, what: string) =>
    `${whole(count)} of ${whole(trials.length)} ${what}`;
  const mark = invalid
    ? h("small", { class: "bad" }, ofAll(invalid, "not valid"))
    : skipped
      ? h("small", {}, ofAll(skipped, "skipped"))
      : null;
  const click = (event: Event) => {
    if ((event as MouseEvent).shiftKey) {
      view.shown.clear();
      view.shown.add(cell);
    } else if (!view.shown.delete(cell)) view.shown.add(cell);
    changed();
  };
  const title = "Show or hide; hold Shift to show only this one";
  return h("button", { class: "key", click, title }, sample(look), of?.label ?? "", mark);
}

/** One chip per value of each axis, where there are several axes: shows or hides all its cells. */
function axisChips(
  page: Page,
  view: View,
  changed: () => void,
  updates: (() => void)[],
): HTMLElement | null {
  if (page.cells.length < 5) return null;
  const all = page.cells.map((_, index) => index);
  const box = h("div", { class: "axes" });
  const chip = (text: string, cells: number[]) => {
    const click = () => {
      const some = cells.some((cell) => view.shown.has(cell));
      for (const cell of cells) some ? view.shown.delete(cell) : view.shown.add(cell);
      changed();
    };
    const button = h("button", { class: "chip", click }, text);
    updates.push(() => {
      const shown = cells.filter((cell) => view.shown.has(cell)).length;
      const pressed = shown === cells.length ? "true" : shown ? "mixed" : "false";
      button.setAttribute("aria-pressed", pressed);
    });
    return button;
  };
  const told = h("span", { class: "told" });
  updates.push(() => {
    told.textContent = `${whole(view.shown.size)} of ${count(all.length, "cell")} shown`;
  });
  box.append(h("span", { class: "axis" }, chip("all", all), told));
  if (page.axes.length > 1) {
    page.axes.forEach((axis, index) => {
      const chips = axis.labels.map((label) =>
        chip(
          label,
          all.filter((cell) => page.cells[cell]?.values[index] === label),
        ),
      );
      box.append(h("span", { class: "axis" }, h("b", {}, axis.name), ...chips));
    });
  }
  return box;
}

function repetitionChoice(page: Page, view: View, changed: () => void): HTMLElement | null {
  const numbers = [...new Set(page.trials.map((trial) => trial.repetition))].sort((a, b) => a - b);
  if (numbers.length < 2) return null;
  const choices: [string, Repetition][] = numbers.map((n) => [`repetition ${n}`, n]);
  choices.push(["all repetitions", "all"], ["mean of repetitions", "mean"]);
  const options = choices.map(([text], index) => h("option", { value: index }, text));
  const select = h("select", { "aria-label": "repetition" }, ...options);
  select.selectedIndex = choices.findIndex(([, value]) => value === view.repetition);
  select.addEventListener("change", () => {
    view.repetition = choices[select.selectedIndex]?.[1] ?? 1;
    changed();
  });
  return select;
}

/** On paper there are no buttons: only what is drawn. */
function printLegend(page: Page, looks: Look[], view: View, updates: (() => void)[]): HTMLElement {
  const box = h("div", { class: "legend print" });
  updates.push(() => {
    const shown = [...view.shown].sort((a, b) => a - b);
    box.replaceChildren(
      ...shown.map((cell) =>
        h("span", { class: "key" }, sample(looks[cell] as Look), page.cells[cell]?.label ?? ""),
      ),
    );
  });
  return box;
}
