// What happened, a sentence per cell, and what was run, when, on what; and at the end of the page, everything needed to run
// it again.

import { looks } from "./data";
import { h, s } from "./dom";
import { count, extent, moment, most, quantity } from "./format";
import type { Page } from "./generated/page";
import { sample } from "./legend";
import { machines } from "./machines";
import { verdicts } from "./study";

/** The head of the page. */
export function headline(page: Page): HTMLElement {
  return h(
    "header",
    {},
    brand("report"),
    h("h1", {}, page.title),
    briefs(page),
    h("p", { class: "lede" }, ...sentence(page), " ", ...trust(page)),
  );
}

/** The first line of every page: whose it is, what it is, and the switch of its theme. */
export function brand(what: string): HTMLElement {
  const name = h("span", { class: "name" }, "suiro");
  return h("div", { class: "brand" }, wave(), name, h("span", {}, what), themeButton());
}

/** Cells whose sentence is shown at once. */
const BRIEFS = 6;

/** What happened in each cell, in one sentence. */
function briefs(page: Page): HTMLElement | null {
  const all = looks(page);
  const items = page.cells.flatMap(({ label, brief }, cell) => {
    if (brief === null) return [];
    const look = all[cell];
    const name = page.cells.length > 1 ? h("b", {}, look ? sample(look) : null, label) : null;
    return [h("li", {}, name, name ? ": " : "", `${unbroken(brief)}.`)];
  });
  if (!items.length) return null;
  const more = items.slice(BRIEFS);
  const rest =
    more.length > 0 &&
    h("details", {}, h("summary", {}, `${count(more.length, "more cell")}`), h("ul", {}, ...more));
  return h("div", { class: "briefs" }, h("ul", {}, ...items.slice(0, BRIEFS)), rest);
}

/** A number stays on the line of its unit. */
function unbroken(text: string): string {
  return text.replace(/(\d) (?=(%|s|ms|[kMG]?bit\/s)( |[;,.)]|$))/g, "$1\u00a0");
}

/** Whether the figures can be trusted, and what became of a study's findings, each with a link to more. */
function trust(page: Page): (Node | string)[] {
  const run = page.trials.filter((trial) => trial.state !== "skipped");
  const valid = run.filter((trial) => trial.valid).length;
  const text = valid === run.length ? "All trials are valid" : `${valid} of ${run.length} valid`;
  const parts: (Node | string)[] = run.length ? [h("a", { href: "#validity" }, text), ". "] : [];
  if (!page.published || !page.findings.length) return parts;
  const study = `Study ${page.published.id}: ${verdicts(page.findings)}`;
  return [...parts, h("a", { href: "#study" }, study), "."];
}

/** The mark: water in a channel. */
function wave(): SVGSVGElement {
  const style = "fill:none;stroke:var(--accent);stroke-width:2.2;stroke-linecap:round";
  const line = (y: number) => s("path", { d: `M2 ${y}q4-5 8 0t8 0t8 0`, style });
  return s("svg", { width: 28, height: 18, "aria-hidden": "true" }, line(6), line(13));
}

/** Labels of an axis in a sentence; more only say how many there are. */
const LABELS = 12;

function values(labels: string[]): string {
  if (labels.length <= LABELS) return labels.join(", ");
  return `${labels[0]} to ${labels.at(-1)}, ${labels.length} values`;
}

/** What was run, in the words of a sentence: cells, how often each, and how long a trial was. */
export function design(page: Page): string {
  const repetitions = page.cells.map(({ trials }) => trials.length);
  const lasted = (trials: Page["trials"]) =>
    trials.map((trial) => trial.duration_s ?? 0).filter((seconds) => seconds >= 0.1);
  // One that is not valid may have ended early.
  const valid = lasted(page.trials.filter((trial) => trial.valid));
  const durations = valid.length ? valid : lasted(page.trials);
  const matrix = page.axes.map((axis) => `${axis.name}: ${values(axis.labels)}`).join("; ");
  const each = durations.length ? ` of ${extent(durations)} s` : "";
  const warmUps = page.trials.map((trial) => trial.warm_up_s ?? 0);
  const warmUp = most(warmUps);
  const upTo = warmUps.every((one) => one === warmUp) ? "" : "up to ";
  const after = warmUp > 0 ? ` with a warm-up of ${upTo}${Number(warmUp.toFixed(1))} s` : "";
  const times = most(repetitions) > 1 ? `, ${extent(repetitions)} times each` : "";
  const cells = page.axes.length ? `${count(page.cells.length, "cell")} (${matrix})` : "One cell";
  return `${cells}${times}, trials${each}${after}`;
}

function sentence(page: Page): (Node | string)[] {
  const study = page.study ? ` It reproduces study ${page.study}.` : "";
  const when = h("time", { datetime: page.started }, moment(page.started));
  const run = `Scenario “${page.scenario}”: ${design(page)}. Run `;
  const by = ` with seed ${page.seed} by suiro ${page.suiro}.${study}`;
  const { virtual_time } = page;
  if (virtual_time) return [`${run}in virtual time (kernel ${virtual_time.kernel})${by}`];
  return [`${run}on `, when, by];
}

/** Shows the theme that the reader prefers, and from the first click on the one that was clicked. */
function themeButton(): HTMLElement {
  const root = document.documentElement;
  const preference = matchMedia("(prefers-color-scheme: dark)");
  const button = h("button", { class: "theme screen", title: "Dark or light" });
  const show = (dark: boolean) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${dark ? "light" : "dark"} colours`);
  };
  const prefer = () => show(preference.matches);
  preference.addEventListener("change", prefer);
  button.addEventListener("click", () => {
    preference.removeEventListener("change", prefer);
    show(root.dataset.theme !== "dark");
  });
  prefer();
  return button;
}

/** The kind of time that trials ran in, with the kernel that made it. */
function timeOf({ virtual_time }: Page): string {
  if (!virtual_time) return "the machine's";
  const { kernel, kernel_sha256 } = virtual_time;
  return `virtual: a guest kernel ${kernel}, SHA-256 ${kernel_sha256.slice(0, 16)}…`;
}

/** How it was run: command, machine, versions, scenario. */
export function provenance(page: Page): HTMLElement {
  const { machine } = page;
  const facts: [string, string][] = [
    ["Command", page.command.join(" ")],
    ["Started", moment(page.started)],
    ["Seed", page.seed],
    ["Time", timeOf(page)],
    ...machines(page),
    ["Kernel", machine.kernel],
    ["System", machine.system],
    [
      "CPU",
      `${machine.cpu}, ${count(machine.cores, "core")}, ${quantity(machine.memory_bytes, "B")}`,
    ],
    ["Clock", machine.clock_source],
    ["Privilege", machine.privilege],
    ...Object.entries({ suiro: page.suiro, ...page.versions }),
    ...Object.entries(machine.settings),
  ];
  const list = facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h(
    "section",
    { id: "provenance" },
    h("h2", {}, "How it was run"),
    h("dl", { class: "facts" }, ...list),
    h("details", {}, h("summary", {}, "The scenario"), h("pre", {}, page.text)),
  );
}
