// The range of a figure's vertical axis.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/chart.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { domain, steps } = await import(`data:text/javascript;base64,${code}`);

/** The range of one line of these values, rounded. */
function range(values, floating) {
  const line = { style: "line", bin_s: 1, values };
  return domain({ lines: [line], x: [0, values.length], floating }).map(Math.round);
}

test("a figure of what may be negative shows it", () => {
  assert.deepEqual(range([-30, null, 70], true), [-36, 76]);
  assert.deepEqual(range([-30, -50], true), [-53, 3], "zero is in sight");
  assert.deepEqual(range([-30, 70], false), [0, 74], "other figures begin at zero");
});

test("a figure that may float begins near its least value", () => {
  assert.deepEqual(range([90, 100], true), [89, 101]);
  assert.deepEqual(range([10, 100], true), [0, 106]);
});

/** The ticks of a chart of rungs in Mbit/s, a pixel for each 20 kbit/s, with an estimate of at most `estimate`. */
function rungs(values, estimate) {
  const rung = { style: "step", bin_s: 1, values };
  const context = { style: "context", bin_s: 1, values: [estimate] };
  const spec = { lines: [rung, context], x: [0, values.length], floating: false };
  return steps(spec, { py: (value) => 500 - value / 2e4, scale: { factor: 1e6 } });
}

test("the rungs that were shown longest are ticks", () => {
  const shown = [3.53e6, 0.349e6, 0.816e6, 0.816e6, 0.816e6, 0.9e6, 3.53e6];
  assert.deepEqual(rungs(shown, 3e6), [3.53, 0.816, 0.349], "0.9 is too near to 0.816");
});

test("an axis that ends far above the rungs has a tick there", () => {
  assert.deepEqual(rungs([3.53e6, 0.816e6], 9e6), [8, 3.53, 0.816]);
  assert.deepEqual(rungs([3.53e6, 0.816e6], 4e6), [3.53, 0.816], "not far above");
});
