// What distinguishes the series of a figure, the marks of cells, and the order of a table.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const src = join(dirname(fileURLToPath(import.meta.url)), "../src");
const contents = ["figures", "latency", "table", "data"]
  .map((name) => `export * from "./${name}";`)
  .join("\n");
const built = await build({
  stdin: { contents, resolveDir: src, loader: "ts" },
  ...{ bundle: true, write: false, format: "esm" },
});
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { highlight, keysOf, linesOf, looks, marks, runs, sharedWarmUp, sorted, warmUpWords } =
  await import(`data:text/javascript;base64,${code}`);

const run = { cell: 0, valid: true, bin_s: 1, points: (index) => [index], stalls: [] };
const panelOf = (...all) => ({
  series: all.map(([label, style], index) => ({ index, info: { label, style } })),
});

test("several series of a cell differ, and have a key", () => {
  const names = ["system calls", "transport", "network", "link"];
  const panel = panelOf(...names.map((name) => [name, "line"]), ["limit", "bound"]);
  const seen = new Set();
  for (const dash of ["", "8 3", "2 2.5"]) {
    const lines = linesOf(panel, run, { label: "cell", colour: "var(--c0)", dash }, false);
    assert.deepEqual(
      lines.map(({ series }) => series),
      [...names, undefined],
    );
    assert.equal(lines[0].dash, dash, "the first is drawn as its cell");
    for (const one of lines.slice(0, names.length))
      seen.add([one.colour, one.dash, one.style].join());
  }
  assert.equal(seen.size, 3 * names.length);
  const keys = keysOf(panel);
  assert.deepEqual(
    keys.map(({ label }) => label),
    names,
  );
  assert.equal(new Set(keys.map(({ dash }) => dash)).size, names.length);
  const flows = Array.from({ length: 20 }, (_, index) => [`flow ${index}`, "line"]);
  assert.equal(new Set(keysOf(panelOf(...flows)).map(({ dash }) => dash)).size, 20);
});

test("the warm-up of a trial is that of its figures", () => {
  const trial = { cell: 0, repetition: 1, valid: true, bin_s: 1, series: [], stalls: [] };
  const trials = [15, 15].map((warm_up_s, at) => ({ ...trial, repetition: at + 1, warm_up_s }));
  const page = { cells: [{ trials: [0, 1] }], trials };
  for (const which of [2, "all", "mean"])
    assert.equal(runs(page, 0, which)[0].warm_up_s, 15, String(which));
});

test("the grey shade ends with the shortest warm-up of what is shown", () => {
  const all = (...lengths) => lengths.map((warm_up_s) => ({ warm_up_s, bin_s: 1 }));
  assert.equal(sharedWarmUp(all(15, 10, 15)), 10);
  assert.equal(sharedWarmUp(all(15, 0)), 0);
  assert.equal(sharedWarmUp([]), 0);
  assert.match(warmUpWords(all(15, 15)), /^Grey: the warm-up of 15 s\. /);
  assert.match(warmUpWords(all(15, 0)), /of 0 to 15 s: show one cell to see its own/);
  assert.equal(warmUpWords(all(0, 0)), null);
  assert.equal(warmUpWords([]), null);
  // Of a trial without series nothing is drawn.
  const lost = { warm_up_s: 0, bin_s: 0 };
  assert.match(warmUpWords([...all(15), lost]), /^Grey: the warm-up of 15 s\. /);
});

test("a single series needs no key and keeps the look of its cell", () => {
  const panel = panelOf(["window", "line"], ["threshold", "context"]);
  const lines = linesOf(panel, run, { label: "cell", colour: "var(--c1)", dash: "8 3" }, false);
  assert.deepEqual(
    lines.map(({ dash, series }) => [dash, series]),
    [
      ["8 3", undefined],
      ["8 3", undefined],
    ],
  );
  assert.deepEqual(keysOf(panel), []);
});

test("more cells than colours have different marks", () => {
  for (const count of [9, 24]) {
    const labels = Array.from({ length: count }, (_, index) => `cell ${index}`);
    const cells = labels.map((label) => ({ values: [label] }));
    const all = looks({ axes: [{ name: "a", labels }], cells });
    const found = [...marks(labels.map((name, index) => ({ name, look: all[index] }))).values()];
    assert.equal(new Set(found.map(({ colour, shape }) => colour + shape)).size, count);
  }
});

const cellOf = (mean) => ({ metrics: [mean === null ? null : { n: 1, mean }] });

test("cells without a value are the last in both directions", () => {
  const page = { cells: [null, 2, null, 3, 1].map(cellOf) };
  const order = (descending) => sorted(page, { all: false, sort: 0, descending });
  assert.deepEqual(order(true), [3, 1, 4, 0, 2]);
  assert.deepEqual(order(false), [4, 1, 3, 0, 2]);
});

test("without a valid trial nothing is said of repetitions", () => {
  const page = { comparable: true, metrics: [], cells: [cellOf(null), cellOf(null)] };
  assert.equal(highlight(page), "");
  const one = { ...page, cells: [cellOf(1), cellOf(2)] };
  assert.match(highlight(one), /one repetition, where small differences mean nothing/);
});
