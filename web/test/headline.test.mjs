// What the page says of the plan: how many cells, how often each, and how long trials were.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/headline.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { design } = await import(`data:text/javascript;base64,${code}`);

/** A page with a cell for each list of durations, in seconds. */
function page(...cells) {
  const axes = [{ name: "rate", labels: cells.map((_, index) => `${index + 1}`) }];
  const trials = cells.flatMap((durations, cell) =>
    durations.map((duration_s, at) => ({ cell, repetition: at + 1, duration_s, valid: true })),
  );
  const indices = (cell) => trials.flatMap((trial, index) => (trial.cell === cell ? index : []));
  return { axes, trials, cells: cells.map((_, cell) => ({ trials: indices(cell) })) };
}

test("a plan of equal trials has one number of each", () => {
  assert.equal(
    design(page([60, 60], [60, 60])),
    "2 cells (rate: 1, 2), 2 times each, trials of 60 s",
  );
  assert.equal(design(page([8.04], [8.01])), "2 cells (rate: 1, 2), trials of 8 s");
  assert.equal(design({ ...page([60]), axes: [] }), "One cell, trials of 60 s");
});

test("a plan whose trials differ has the least and the most", () => {
  const differ = page([60], [120, 120], [300, 300, 300, 300]);
  assert.equal(design(differ), "3 cells (rate: 1, 2, 3), 1 to 4 times each, trials of 60 to 300 s");
});

test("a trial that ended early or never began does not count, unless there is no other", () => {
  const early = page([60, 12.3], [60, 0]);
  early.trials[1].valid = false;
  early.trials[3].valid = false;
  assert.match(design(early), /, 2 times each, trials of 60 s$/);
  for (const trial of early.trials) trial.valid = false;
  assert.match(design(early), /, trials of 12\.3 to 60 s$/);
  for (const trial of early.trials) trial.duration_s = null;
  assert.match(design(early), /, 2 times each, trials$/);
});
