// Which series share a figure, and what figures are called.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/data.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { panels } = await import(`data:text/javascript;base64,${code}`);

const look = (id, title, more = {}) => ({ id, title, direction: null, quiet_up: false, ...more });
const series = (panel, instance = null, direction = null) => {
  return { panel, label: "a, b up", instance, direction };
};

/** The titles of the figures of these panels and series, and how many series each shows. */
function drawn(panel, ...all) {
  const trials = [{ series: all.map(({ values }) => values ?? [0, 0]) }];
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
  assert.deepEqual(drawn(quiet, up, series("queue", "uplink", "down")), [
    ["Queue, uplink down", 1],
  ]);
  assert.deepEqual(drawn(quiet, { ...up, values: [0, 5] }), [["Queue, up", 1]]);
});
