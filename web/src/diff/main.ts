// The page of `suiro diff`: what changed, what differs in how the folders were made, each metric, and the trials themselves.

import { load } from "../data";
import { h } from "../dom";
import { count, moment } from "../format";
import type { Comparison, Difference, DiffFolder, DiffVerdict, Setting } from "../generated/diff";
import { brand } from "../headline";
import { letter } from "./letter";
import { plots } from "./plots";
import { cells } from "./table";

const WORDS: [DiffVerdict, string][] = [
  ["worse", "worse"],
  ["better", "better"],
  ["higher", "higher"],
  ["lower", "lower"],
  ["too_noisy", "too noisy"],
  ["same", "the same"],
];

/** How many metrics got each verdict, in a sentence. */
function verdicts({ verdicts }: Comparison): (Node | string)[] {
  const found = WORDS.filter(([verdict]) => verdicts[verdict]);
  if (!found.length) return ["No metric was measured on both sides."];
  const colour: Partial<Record<DiffVerdict, string>> = { worse: "bad", better: "good" };
  const parts = found.flatMap(([verdict, words], index) => [
    index ? ", " : "",
    h("b", { class: colour[verdict] ?? null }, `${verdicts[verdict]} ${words}`),
  ]);
  return ["Metrics, over all cells: ", ...parts, "."];
}

function folder(all: Difference, one: DiffFolder): HTMLElement {
  const valid = one.valid === one.trials ? "all valid" : `${one.valid} valid`;
  const when = one.started ? `run ${moment(one.started)}` : "in virtual time";
  const trials = count(one.trials, "trial");
  const text = ` ${one.path}: ${one.scenario}, ${trials}, ${valid}, seed ${one.seed}, ${when}, by suiro ${one.suiro}`;
  return h("li", {}, letter(all, all.folders.indexOf(one)), text);
}

const KINDS: [Setting["kind"], string][] = [
  ["scenario", "Scenario"],
  ["version", "Versions"],
  ["machine", "Machine"],
];

function settings(all: Difference, comparison: Comparison): HTMLElement {
  const same = KINDS.filter(([kind]) => comparison.settings.every((it) => it.kind !== kind));
  const differ = KINDS.flatMap(([kind, words]) =>
    comparison.settings
      .filter((it) => it.kind === kind)
      .map((it) =>
        h(
          "tr",
          {},
          h("td", {}, words),
          h("th", { scope: "row" }, h("code", {}, it.name)),
          h("td", {}, h("code", {}, it.first ?? "–")),
          h("td", {}, h("code", {}, it.second ?? "–")),
        ),
      ),
  );
  const head = h(
    "tr",
    {},
    h("th", {}),
    h("th", {}),
    h("th", { scope: "col" }, letter(all, 0)),
    h("th", { scope: "col" }, letter(all, comparison.folder)),
  );
  const words = same.map(([, text]) => text.toLowerCase()).join(", ");
  return h(
    "div",
    {},
    h("h3", {}, "What differs in how they were made"),
    differ.length
      ? h(
          "div",
          { class: "scroll" },
          h("table", { class: "small settings" }, h("thead", {}, head), h("tbody", {}, ...differ)),
        )
      : null,
    same.length ? h("p", { class: "hint" }, `The same: ${words}.`) : null,
  );
}

function alone(all: Difference, comparison: Comparison): HTMLElement | null {
  const sides: [number, string[]][] = [
    [0, comparison.only_first],
    [comparison.folder, comparison.only_second],
  ];
  const items = sides
    .filter(([, labels]) => labels.length)
    .map(([side, labels]) => h("li", {}, "Only in ", letter(all, side), `: ${labels.join(", ")}`));
  return items.length ? h("ul", {}, ...items) : null;
}

function section(all: Difference, comparison: Comparison): HTMLElement {
  return h(
    "section",
    { class: "comparison" },
    h("h2", {}, letter(all, 0), " to ", letter(all, comparison.folder)),
    h("p", {}, ...verdicts(comparison)),
    settings(all, comparison),
    alone(all, comparison),
    ...cells(all, comparison),
  );
}

function header(all: Difference): HTMLElement {
  const names = all.folders.map((it) => it.letter);
  const title = `Results compared: ${names.join(", ")}`;
  const list = all.folders.map((one) => folder(all, one));
  return h(
    "header",
    {},
    brand("comparison"),
    h("h1", {}, title),
    h("ul", { class: "folders" }, ...list),
  );
}

function method(all: Difference): HTMLElement {
  return h(
    "section",
    { id: "method" },
    h("h2", {}, "How it was judged"),
    h("p", {}, `${all.test}. The margin is ${Number((all.margin * 100).toPrecision(3))} %.`),
    h("p", { class: "hint" }, `Compared by suiro ${all.suiro}.`),
  );
}

const root = document.getElementById("page");
if (root) {
  const all = load<Difference>();
  const sections = all.comparisons.map((comparison) => section(all, comparison));
  const trials = plots(all);
  root.append(header(all), ...sections, ...(trials ? [trials.element] : []), method(all));
  trials?.redraw();
}
