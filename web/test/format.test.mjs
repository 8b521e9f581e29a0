// Numbers, units and ticks.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/format.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const format = await import(`data:text/javascript;base64,${code}`);

test("units fit the greatest value", () => {
  assert.deepEqual(format.scaleFor("bit/s", 3.2e6), {
    unit: "Mbit/s",
    factor: 1e6,
    counts: false,
  });
  assert.equal(format.scaleFor("ms", 2400).unit, "ms");
  assert.equal(format.scaleFor("ms", 24000).unit, "s");
  assert.equal(format.scaleFor("packets", 7).unit, "packets");
  assert.equal(format.quantity(0.0123, "ratio"), "1.23 %");
  assert.equal(format.quantity(null, "ms"), "–");
  assert.equal(format.quantity(1, "requests"), "1 request");
  assert.equal(format.quantity(2, "requests"), "2 requests");
});

test("an extent has both ends, if they differ as they are printed", () => {
  assert.equal(format.extent([300, 60, 120]), "60 to 300");
  assert.equal(format.extent([60.02, 59.98]), "60");
  assert.equal(format.extent([0.25, 3600]), "0.3 to 3,600");
  assert.equal(format.extent([]), "0");
});

test("digits and margins", () => {
  assert.equal(format.plain(9.999, 3), "10.0");
  assert.equal(format.plain(1234.5, 3), "1230");
  assert.equal(format.plain(0, 3), "0");
  assert.equal(format.plain(1234.5, 0), "1235");
  const count = format.scaleFor("packets", 12345);
  assert.equal(format.shown(12345, count, 3), "12345");
  assert.equal(format.shown(1.5, count, 3), "1.50");
  const rate = format.scaleFor("bit/s", 3e6);
  assert.equal(format.margin(12345, 3e6, rate, 3), "0.01");
  assert.equal(format.margin(0.66, 2, count, 3), "0.7");
});

test("ticks are round, within range, and printed with the decimals they need", () => {
  assert.deepEqual(format.ticks(0, 10, 4), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(
    format.ticks(5.9, 6.32, 4).map((tick) => tick.toFixed(1)),
    ["5.9", "6.0", "6.1", "6.2", "6.3"],
  );
  assert.deepEqual(format.ticks(1, 1, 4), []);
  for (const [from, to] of [
    [0, 1e-6],
    [3, 7e9],
    [-5, 5],
  ]) {
    const all = format.ticks(from, to, 5);
    assert.ok(all.length >= 2 && all.length <= 11);
    assert.ok(all.every((tick) => tick >= from - 1e-9 * (to - from) && tick <= to * (1 + 1e-9)));
  }
  assert.equal(format.tickText(2.5, [0, 2.5, 5]), "2.5");
  assert.equal(format.tickText(0.25, [0, 0.25, 0.5]), "0.25");
  assert.equal(format.tickText(20, [0, 20, 40]), "20");
});

test("moments and counts", () => {
  assert.equal(format.moment("2026-01-31T09:05:59Z"), "2026-01-31 09:05 UTC");
  assert.equal(format.count(1, "trial"), "1 trial");
  assert.equal(format.count(2000, "packet"), "2,000 packets");
});
