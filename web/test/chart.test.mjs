// The range and the ticks of a figure's vertical axis, and its bars.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/chart.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { barOf, domain, path, steps } = await import(`data:text/javascript;base64,${code}`);

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

test("rungs outside of the stretch of time in sight are no ticks", () => {
  const rung = { style: "step", bin_s: 1, values: [8e6, 8e6, 1e6, 2e6, 2e6, 8e6] };
  const spec = { lines: [rung], x: [2, 5], floating: false };
  const chart = { py: (value) => 500 - value / 2e4, scale: { factor: 1e6 } };
  assert.deepEqual(steps(spec, chart), [2, 1]);
  const [low, high] = domain(spec);
  const all = { ...spec, lines: [{ ...rung, values: [-4e6, 8e6, -4e6, 2e6, 2e6] }] };
  assert.deepEqual(steps(all, chart), [2], "-4 is below the axis");
  assert.ok(low <= 1e6 && high >= 2e6);
});

test("bars of different cells stand next to each other", () => {
  const chart = { px: (t) => 10 * t, py: (value) => 100 - value, bottom: 100 };
  const bar = (colour, dash) => ({ style: "bar", bin_s: 1, values: [5, 7], colour, dash });
  const line = { ...bar("var(--c7)", ""), style: "line" };
  const all = [bar("var(--c0)", ""), line, bar("var(--c1)", "8 3"), bar("var(--c0)", "8 3")];
  const bars = all.filter(({ style }) => style === "bar");
  const made = bars.map((one) => barOf(one, all, chart));
  const { width } = made[0];
  assert.ok(Math.abs(3 * width - 8) < 1e-9, `${width}`);
  assert.deepEqual(
    made.map(({ shift }) => Math.round((10 * shift) / width) / 10),
    [-1, 0, 1],
  );
  const drawn = bars.map((one, index) => path(one, chart, [0, 2], made[index].shift));
  assert.deepEqual(drawn, [
    "M2.3 100V95.0M12.3 100V93.0",
    "M5.0 100V95.0M15.0 100V93.0",
    "M7.7 100V95.0M17.7 100V93.0",
  ]);
  assert.equal(barOf(bars[0], [bars[0]], chart).shift, 0, "the bars of one cell");
});
