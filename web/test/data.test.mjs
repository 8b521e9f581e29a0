// Which series share a figure, and what figures are called.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/data.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { leftOut, looks, panels, runs } = await import(`data:text/javascript;base64,${code}`);

const look = (id, title, more = {}) => ({ id, title, direction: null, quiet_up: false, ...more });
const series = (panel, instance = null, direction = null) => {
  return { panel, label: "a, b up", instance, direction };
};

/** The titles of the figures of these panels and series, and how many series each shows. */
function drawn(panel, ...all) {
  const trials = [{ series: all.map(({ values }) => values ?? [0, 5]) }];
  const found = panels({ panels: panel, series: all, trials });
  return found.map((figure) => [figure.title, figure.series.length]);
}

test("figures stand in the order of the panels, each instance in its own", () => {
  const order = [look("rtt", "RTT"), look("window", "Window")];
  assert.deepEqual(
    drawn(
      order,
      series("window", "a"),
      series("rtt"),
      series("window", "b"),
      series("window", "a"),
    ),
    [
      ["RTT", 1],
      ["Window, a", 2],
      ["Window, b", 1],
    ],
  );
});

test("a title names the direction unless the panel is of one", () => {
  const both = [series("queue", "core", "down"), series("queue", null, "down")];
  assert.deepEqual(drawn([look("queue", "Queue")], ...both), [
    ["Queue, core down", 1],
    ["Queue, down", 1],
  ]);
  const one = [look("queue", "Queue down", { direction: "down" })];
  assert.deepEqual(drawn(one, ...both), [
    ["Queue down, core", 1],
    ["Queue down", 1],
  ]);
});

test("a quiet up direction is left out, whatever its link is called", () => {
  const quiet = [look("queue", "Queue", { quiet_up: true })];
  const up = series("queue", null, "up");
  const nearlyEmpty = { ...up, values: [0, 0.01] };
  assert.deepEqual(drawn(quiet, nearlyEmpty, series("queue", "uplink", "down")), [
    ["Queue, uplink down", 1],
  ]);
  assert.deepEqual(drawn(quiet, { ...up, values: [0, 5] }), [["Queue, up", 1]]);
});

test("a figure in which nothing is to be seen is not drawn, but named", () => {
  const all = [look("losses", "Dropped"), look("margin", "Margin"), look("rtt", "RTT")];
  const found = [
    { ...series("losses"), values: [0, 0] },
    { ...series("margin"), values: [0, -3] },
    { ...series("rtt"), values: [null, null] },
    // A bound alone is no reason to draw.
    { ...series("rtt"), style: "bound", values: [8, 8] },
  ];
  assert.deepEqual(drawn(all, ...found), [["Margin", 1]]);
  const trials = [{ series: found.map(({ values }) => values) }];
  assert.deepEqual(leftOut({ panels: all, series: found, trials }), ["Dropped", "RTT"]);
});

test("lines differ by dash as well as by colour", () => {
  const axes = (...sizes) =>
    sizes.map((n, axis) => ({
      name: `a${axis}`,
      labels: Array.from({ length: n }, (_, i) => `${i}`),
    }));
  const cells = (all) =>
    all
      .reduce((rest, { labels }) => rest.flatMap((one) => labels.map((l) => [...one, l])), [[]])
      .map((values) => ({ values }));
  for (const sizes of [[2], [8], [3, 2], [2, 4]]) {
    const all = axes(...sizes);
    const dashes = looks({ axes: all, cells: cells(all) }).map(({ dash }) => dash);
    assert.equal(new Set(dashes).size, dashes.length, `${sizes}: ${dashes}`);
  }
  for (const sizes of [[20], [8, 5], [3, 4, 4]]) {
    const all = axes(...sizes);
    const both = looks({ axes: all, cells: cells(all) }).map(({ colour, dash }) => colour + dash);
    const most = Math.min(both.length, 24);
    assert.ok(new Set(both).size >= most, `${sizes}: ${new Set(both).size} of ${both.length}`);
  }
});

/** The mean of trials of these bins, each with its values. */
function meanOf(...all) {
  const trials = all.map(([bin_s, values], index) => {
    return { cell: 0, repetition: index + 1, valid: true, bin_s, series: [values], stalls: [] };
  });
  const page = { cells: [{ trials: trials.map((_, index) => index) }], trials };
  const [run] = runs(page, 0, "mean");
  return run.points(0);
}

test("the mean of repetitions is of all, whatever the width of their bins", () => {
  const level = (value, length) => Array(length).fill(value);
  const near = meanOf([0.1005, level(0, 100)], [0.1007, level(10, 100)]);
  assert.ok(
    near.slice(0, 100).every((value) => Math.abs(value - 5) < 1e-9),
    `${near}`,
  );
  // At the same time, not at the same number: half a second of ten, then nothing.
  const later = meanOf([0.1, level(0, 10)], [0.05, [...level(10, 10), ...level(0, 10)]]);
  const rounded = later.map((value) => Math.round(value * 1e6) / 1e6);
  assert.deepEqual(rounded, [...level(5, 5), ...level(0, 5)]);
  const gap = meanOf([0.1, level(2, 4)], [0.2, [4, null]]);
  assert.deepEqual(gap, [3, 3, 2, 2], "what was not measured is not in the mean");
});
