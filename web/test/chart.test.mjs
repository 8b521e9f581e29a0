// The range of a figure's vertical axis.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/chart.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { domain } = await import(`data:text/javascript;base64,${code}`);

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
