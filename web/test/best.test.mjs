// What the page calls better, in headless Chromium: only what its repetitions show.

import assert from "node:assert/strict";
import { test } from "node:test";
import { altered, open, skip, synthetic, useFolders } from "./pages.mjs";

useFolders("matrix");

/** Three repetitions of each cell, with this half of the 95 % interval: rows differ by 10, columns by nothing. */
const repeated = (half, more) => (data) => {
  for (const cell of data.cells) {
    const [row, , third] = cell.values.map((value, axis) => data.axes[axis].labels.indexOf(value));
    const spread = { n: 3, mean: 100 + 10 * row + third, sd: half, ci95: half };
    cell.metrics = cell.metrics.map(() => ({ ...spread }));
  }
  more?.(data);
};

/** The ranks of a board, row by row, and the sentence below it. */
async function ranked(file) {
  const { page, faults } = await open(file);
  assert.deepEqual(faults, []);
  const rows = await page.$$eval("#board tbody tr", (all) =>
    all.map((row) =>
      [...row.querySelectorAll("td")].map((td) => td.querySelector("sub")?.textContent ?? ""),
    ),
  );
  const colours = await page.$$eval("#board tbody td[style]", (all) => all.length);
  const notes = await page.$$eval("#board .notes li", (all) => all.map((it) => it.textContent));
  const told = (await page.textContent("#board .scroll + .hint")).trim();
  return { rows, colours, notes, told };
}

test("a board ranks a column where intervals lie apart, and a value opens its trials", {
  skip,
}, async () => {
  const { page, faults } = await open(await altered("matrix", "board", repeated(2)));
  assert.equal(await page.locator("#board tbody td").count(), 6, "of a third axis the first value");
  assert.equal(await page.$("#board .opened li"), null);
  await page.click("#board tbody td button >> nth=0");
  assert.ok((await page.$$("#board .opened li a")).length > 0);
  assert.ok((await page.$$("#board .opened path.trace")).length > 0);
  const chart = await page.textContent("#board .opened figcaption");
  assert.match(
    chart,
    /^Rate of each link \(grey: the rate of link down, which all its flows share\)$/,
  );
  await page.click("#board tbody td button >> nth=0");
  assert.equal(await page.$("#board .opened li"), null);
  assert.deepEqual(faults, []);
  // Goodput: 120, 110 and 100 from the last row to the first.
  const apart = await ranked(await altered("matrix", "apart", repeated(2)));
  assert.deepEqual(apart.rows, [
    ["3", "3"],
    ["2", "2"],
    ["1", "1"],
  ]);
  assert.deepEqual([apart.colours, apart.told], [6, ""]);
  assert.match(
    apart.notes.join(),
    /^reno is the last in throughput, bold\. Its stalls.* there came from: not known 100 %\./,
  );
});

test("a board ranks nothing that repetitions do not show", { skip }, async () => {
  const none = [
    ["", ""],
    ["", ""],
    ["", ""],
  ];
  const overlap = await ranked(await altered("matrix", "overlap", repeated(6)));
  assert.deepEqual([overlap.rows, overlap.colours, overlap.notes], [none, 0, []]);
  assert.equal(overlap.told, "No ranks: the intervals overlap.");
  // The worst two of one column overlap with each other alone.
  const part = repeated(2, (data) => {
    for (const cell of data.cells)
      if (cell.values[0] === "cubic" && cell.values[1] === "bold")
        for (const spread of cell.metrics) spread.mean -= 8;
  });
  const some = await ranked(await altered("matrix", "some", part));
  assert.deepEqual(some.rows, [
    ["3", "2"],
    ["2", "2"],
    ["1", "1"],
  ]);
  assert.match(
    some.notes.join("\n"),
    /^reno is the last in throughput, and among the last in bold\./m,
  );
  assert.match(some.notes.join("\n"), /^cubic is among the last in bold\./m);
  // Of two repetitions in one row, the others have ranks.
  const seldom = repeated(2, (data) => {
    for (const cell of data.cells)
      if (cell.values[0] === "cubic") for (const spread of cell.metrics) spread.n = 2;
  });
  const others = await ranked(await altered("matrix", "seldom", seldom));
  const without = "Without a rank, as valid repetitions are fewer than 3:";
  assert.equal(others.told, `${without} cubic in throughput, bold.`);
  const two = await ranked(await synthetic("matrix"));
  assert.deepEqual(two.rows, none);
  assert.equal(two.told, "No ranks: a value has fewer than 3 valid repetitions.");
});

test("a board ranks no rows whose links differ", { skip }, async () => {
  const faster = (axis, label) => (data) => {
    data.comparable = false;
    for (const trial of data.trials)
      if (data.cells[trial.cell].values[axis] === label)
        for (const check of trial.self_checks.flatMap(({ checks }) => checks))
          if (check.what === "rate") check.asked *= 2;
  };
  const columns = repeated(2, faster(1, "bold"));
  const each = await ranked(await altered("matrix", "columns", columns));
  assert.deepEqual(
    each.rows,
    [
      ["3", "3"],
      ["2", "2"],
      ["1", "1"],
    ],
    "each column has one link",
  );
  const rows = await ranked(await altered("matrix", "rows", repeated(2, faster(0, "cubic"))));
  assert.deepEqual(rows.rows, [
    ["", ""],
    ["", ""],
    ["", ""],
  ]);
  assert.equal(rows.told, "No ranks: the links of its rows differ.");
});

test("the table calls a value the best where its interval lies apart", { skip }, async () => {
  const best = async (name, change) => {
    const { page } = await open(await altered("matrix", name, change));
    const first = "#cells tbody tr td:nth-child(2)";
    const cells = await page.$$eval(first, (all) =>
      all.map((td) => td.classList.contains("best") && Number.parseFloat(td.textContent)),
    );
    return [cells.filter((value) => value !== false), await page.textContent("#cells .hint")];
  };
  // Goodput: 100 to 121, twice each.
  const [apart, highlighted] = await best("table-apart", repeated(0.1));
  assert.deepEqual(apart, [121, 121]);
  assert.match(highlighted, /The best value of each metric is highlighted/);
  // 120 and 121 overlap, but not 120 and 111.
  assert.deepEqual((await best("table-near", repeated(2)))[0].sort(), [120, 120, 121, 121]);
  const [none, why] = await best("table-overlap", repeated(12));
  assert.deepEqual(none, []);
  assert.match(why, /No value is called the best: the intervals overlap\./);
  const [two, few] = await best("table-two", () => {});
  assert.deepEqual(two, []);
  assert.match(few, /No value is called the best: that takes 3 valid repetitions of each cell\./);
  const differ = repeated(0.1, (data) => {
    data.comparable = false;
  });
  assert.deepEqual((await best("table-links", differ))[0], []);
});
