// What the board and the table call better, what they name as causes, and which link bounds a chart.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const src = join(dirname(fileURLToPath(import.meta.url)), "../src");
const contents = ["board", "rank", "causes", "rates", "data", "format"]
  .map((name) => `export * from "./${name}";`)
  .join("\n");
const built = await build({
  stdin: { contents, resolveDir: src, loader: "ts" },
  ...{ bundle: true, write: false, format: "esm" },
});
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { alikeLinks, atFirst, best, bound, causes, keysOf, ranking, runs, scaleFor } = await import(
  `data:text/javascript;base64,${code}`
);

const of = (mean, ci95, n = 3) => ({ n, mean, sd: n > 1 ? 1 : null, ci95: n > 1 ? ci95 : null });
const ranks = (better, ...spreads) =>
  ranking({ better, digits: 3 }, spreads, scaleFor("s", 10)).ranks ?? null;
const because = (better, ...spreads) =>
  ranking({ better, digits: 3 }, spreads, scaleFor("s", 10)).because;

test("values whose intervals lie apart have ranks, the best first", () => {
  assert.deepEqual(ranks("lower", of(3, 0.4), of(1, 0.4), of(2, 0.4)), [3, 1, 2]);
  assert.deepEqual(ranks("higher", of(3, 0.4), of(1, 0.4), null, of(2, 0.4)), [1, 3, null, 2]);
  assert.equal(ranks("neither", of(3, 0.4), of(1, 0.4)), null);
});

test("values whose intervals overlap share a rank", () => {
  assert.deepEqual(ranks("lower", of(1, 0.6), of(2, 0.6), of(4, 0.6)), [1, 1, 2]);
  assert.deepEqual(ranks("higher", of(1, 0.6), of(2, 0.6), of(4, 0.6)), [2, 2, 1]);
  // The widest overlaps with values on both sides of a gap between others.
  assert.equal(because("lower", of(1, 0.2), of(2, 0.2), of(3, 2)), "the intervals overlap");
  assert.equal(because("lower", of(1, 0.5), of(2, 0.5)), "the intervals overlap");
  // In virtual time, repetitions may be identical. What is printed alike is as good.
  assert.deepEqual(ranks("lower", of(1, 0), of(1, 0), of(2, 0)), [1, 1, 2]);
  assert.deepEqual(ranks("lower", of(1, 0), of(1.0001, 0), of(2, 0)), [1, 1, 2]);
});

test("the best are those whose intervals overlap with that of the best value", () => {
  const bestOf = (better, ...spreads) => [
    ...best({ better, digits: 3 }, spreads, scaleFor("s", 10)),
  ];
  // Each overlaps with the next, but the third not with the first.
  const chain = [of(1, 0.6), of(2, 0.6), of(3, 0.6)];
  assert.deepEqual(bestOf("lower", ...chain), [0, 1]);
  assert.deepEqual(bestOf("higher", ...chain, null), [2, 1]);
  assert.deepEqual(bestOf("neither", ...chain), []);
  assert.deepEqual(bestOf("lower", of(1, 0.6), of(2, 0.6)), [], "all of them");
  assert.deepEqual(bestOf("lower", of(1, 0.1, 2), of(2, 0.1)), [], "two repetitions");
});

test("fewer than three repetitions have no ranks", () => {
  const once = because("lower", of(1, 0, 1), of(2, 0, 1));
  assert.match(once, /^one repetition, .* as it has no interval; so no value is coloured/);
  assert.match(because("lower", of(1, 0.1), of(2, 0.1, 2)), /fewer than 3 valid repetitions/);
  assert.match(because("lower", of(1, 0.1), null), /fewer than two values/);
  // The others are ranked among themselves.
  assert.deepEqual(ranks("lower", of(3, 0.4), of(1, 0.4, 2), of(2, 0.4)), [2, null, 1]);
  assert.deepEqual(ranks("lower", of(3, 0.4), of(1, 0, 1), of(2, 0.4)), [2, null, 1]);
});

test("the board of pairs shows their shares at first, any other the first of the main metrics", () => {
  const metric = (name, main, better) => ({ name, main, better });
  const all = [
    metric("flow.segments", true, "neither"),
    metric("flow.retransmits", false, "lower"),
    metric("flow.goodput_mean_bps", true, "higher"),
    metric("harm.share_ratio", true, "neither"),
  ];
  assert.equal(atFirst(all, [0, 1, 2, 3]), 3);
  assert.equal(atFirst(all, [0, 1, 2]), 2, "measured");
  assert.equal(atFirst(all, [0, 1]), 0);
});

const check = (asked) => ({ what: "rate", asked });
const asked = (...rates) => ({
  self_checks: rates.map((rate) => ({ link: "l", direction: "down", checks: [check(rate)] })),
});
const doc = "rate configured in the scenario";
const served = "rate at which the link served while packets waited";

test("the meaning of a link's rate says whether it was configured", () => {
  const catalogue = join(src, "../../crates/analysis/src/catalogue/link.rs");
  const text = readFileSync(catalogue, "utf8");
  for (const meaning of [doc, served]) assert.ok(text.includes(`"${meaning}`), meaning);
});

test("links are alike if the same was asked of them", () => {
  const rate = { name: "link.down.rate_bps", doc };
  const trials = [
    { ...asked(1e6), series: [[1e6, 1e6]] },
    { ...asked(1e6), series: [[1e6, 1.01e6]] },
    { ...asked(2e6), series: [[2e6, 2e6]] },
    // It begins the same and falls.
    { ...asked(1e6), series: [[1e6, 5e5]] },
    { self_checks: [], series: [null] },
  ];
  const cells = trials.map((_, index) => ({ trials: [index] }));
  const page = { comparable: false, series: [rate], cells, trials };
  const alike = (...some) => alikeLinks(page, some);
  const found = [alike(0, 1), alike(0, 2), alike(0, 3), alike(0, 4)];
  assert.deepEqual(found, [true, false, false, false]);
  // At what rate a link happened to serve is not what was asked.
  assert.equal(alikeLinks({ ...page, series: [{ ...rate, doc: served }] }, [0, 3]), true);
  assert.equal(alikeLinks({ ...page, comparable: true }, [0, 2]), true);
});

const effect = (from_s, to_s, cause, more = {}) => ({
  ...{ subject: "viewer", effect: "stall", from_s, to_s, causes: [{ cause, share: 1 }], ...more },
});
const told = (trials, metrics = [], spreads = []) =>
  causes(
    {
      metrics,
      causes: [{ cause: "loss", label: "lost packets" }],
      cells: [{ trials: trials.map((_, index) => index), metrics: spreads }],
      trials: trials.map((one) => ({ valid: true, effects_left_out: 0, effects: [], ...one })),
    },
    [0],
  );

test("causes are of valid trials, and a viewer's time counts once", () => {
  // 10 s of loss, of which the last 4 are also late; then 2 s more are late: 8 to 4.
  const late = effect(6, 12, "link_rate", { effect: "late" });
  const first = { effects: [effect(0, 10, "loss"), late] };
  const invalid = { valid: false, effects: [effect(0, 1000, "outage")] };
  const from = /^Its stalls, late frames and other effects there( \(.*\))? came from: (.*)\.$/;
  assert.equal(told([first, invalid]).match(from)[2], "lost packets 67 %, link rate 33 %");
  // The same stretch of another viewer is its own.
  const other = { effects: [...first.effects, effect(0, 4, "loss", { subject: "other" })] };
  assert.equal(told([other]).match(from)[2], "lost packets 75 %, link rate 25 %");
  const cut = told([{ ...first, effects_left_out: 7 }]);
  assert.equal(cut.match(from)[1], " (the longest 2 of a trial)");
});

test("without effects, the causes are what limited flows", () => {
  const metrics = ["why.pacing_ratio", "why.stalled_loss_ratio", "why.loss_ratio"];
  const named = metrics.map((name) => ({ name }));
  const spreads = [of(0.3, 0.1), of(1, 0), of(0.1, 0.1)];
  const words = "Its flows there were limited by: pacing 75 %, lost packets 25 %.";
  assert.equal(told([{ effects: [] }], named, spreads), words);
  assert.equal(told([{ valid: false, effects: [effect(0, 1, "loss")] }]), null);
});

/** The bound of a chart of `drawn` over links: rate, what it delivered, the segment of a station and its rate's meaning. */
function bounded(drawn, links) {
  const series = [{ name: "fairness.video_bps", instance: null, direction: null }];
  const values = [drawn];
  const totals = [];
  for (const [name, [rate, throughput, segment, meaning]] of Object.entries(links)) {
    const [instance, direction] = name.split(" ");
    totals.push({ link: instance, direction, segment: segment ?? null });
    for (const [field, of] of Object.entries({ rate_bps: rate, throughput_bps: throughput })) {
      const path = `link.${instance}.${direction}.${field}`;
      series.push({ name: path, instance, direction, doc: meaning ?? doc });
      values.push(of);
    }
  }
  const trial = { cell: 0, valid: true, bin_s: 1, stalls: [], links: totals, series: values };
  const page = { series, cells: [{ trials: [0] }], trials: [trial] };
  const found = bound(page, 0, runs(page, 0, "all"), [{ info: series[0], index: 0 }]);
  return found && [found.words, ...found.lines.map((line) => line.values[0])];
}
const level = (value) => [value, value];

test("a chart's bound is the slowest link that carries its flows, in either direction", () => {
  const links = {
    "bottleneck down": [level(2e6), level(1e6)],
    // Slower, but acknowledgements alone cross it.
    "bottleneck up": [level(1e6), level(5e4)],
    "access down": [level(9e6), level(1e6)],
  };
  const words = "grey: the rate of bottleneck down, which all its flows share";
  assert.deepEqual(bounded(level(1e6), links), [words, 2e6]);
  const up = { "a up": [level(2e6), level(1e6)], "wired down": [level(1e8), level(1e6)] };
  const found = ["grey: the rate of a up, which all its flows share", 2e6];
  assert.deepEqual(bounded(level(1e6), up), found);
  // A flow that is there for a tenth of the time is carried, though its mean is more than the link's.
  const brief = [1e6, ...Array(9).fill(null)];
  const busy = { "a down": [Array(10).fill(2e6), [1e6, ...Array(9).fill(0)]] };
  assert.equal(bounded(brief, busy)?.[1], 2e6);
});

test("a link that many share is drawn with what all its flows got", () => {
  const words = "dotted: all flows of a down; grey: its rate";
  assert.deepEqual(bounded(level(8e5), { "a down": [level(4e6), level(3.9e6)] }), [
    words,
    3.9e6,
    4e6,
  ]);
});

test("no bound is drawn that is far above what it carries, nor what a Wi-Fi station sent", () => {
  assert.equal(bounded(level(1e6), { "wired down": [level(1e8), level(8e6)] }), null);
  const wifi = {
    "cell-a up": [level(1.5e6), level(1e6), "cell", served],
    "wired down": [level(1e8), level(8e6)],
  };
  assert.equal(bounded(level(1e6), wifi), null);
  // A half-duplex medium has a rate of its own.
  const hub = { "hub-a up": [level(3e6), level(1e6), "hub"] };
  assert.equal(bounded(level(1e6), hub)?.[1], 3e6);
});

test("a chart of several links or flows has a key", () => {
  const one = (instance, direction) => {
    const name = `link.${instance}.${direction}.throughput_bps`;
    return { info: { name, label: "throughput", instance, direction } };
  };
  const keys = keysOf([one("a", "down"), one("a", "up"), one("b", "down")]);
  const labels = keys.map(({ label }) => label);
  assert.deepEqual(labels, ["throughput, a down", "throughput, a up", "throughput, b down"]);
  assert.equal(new Set(keys.map(({ colour, dash }) => colour + dash)).size, 3);
  assert.deepEqual(keysOf([one("a", "down")]), []);
});
