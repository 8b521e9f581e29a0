// The charts of a cell with several flows: a line for each, and what the others reach.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { altered, open, skip, useFolders } from "./pages.mjs";

useFolders("quick", "matrix");

const src = join(dirname(fileURLToPath(import.meta.url)), "../src");
const contents = ["chart", "data", "rates"].map((name) => `export * from "./${name}";`).join("\n");
const built = await build({
  stdin: { contents, resolveDir: src, loader: "ts" },
  ...{ bundle: true, write: false, format: "esm" },
});
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { domain, envelopesOf, keysOf, outline, ratesOf, runs } = await import(
  `data:text/javascript;base64,${code}`
);

/** A series of single flows. */
const flow = (kind, instance) => ({
  ...{ name: `fairness.${instance}.${kind}_flow_bps`, panel: "flows", unit: "bit/s", doc: "" },
  ...{ label: `${kind} flow`, instance, direction: null, style: "line" },
});
/** A series of all flows. */
const shared = (field) => ({ ...flow("video", null), name: `fairness.${field}`, label: field });

/** The runs of a cell with one trial that has these series and values. */
function recorded(series, values) {
  const trial = { cell: 0, valid: true, bin_s: 1, stalls: [], links: [], series: values };
  const page = { series, cells: [{ trials: [0] }], trials: [trial] };
  return [page, runs(page, 0, "all")];
}

test("of several flows each has a line, video before TCP, by name", () => {
  const of = [flow("tcp", "sink"), flow("video", "camera-10"), flow("video", "camera-2")];
  const series = [shared("video_bps"), shared("tcp_bps"), ...of];
  const each = ratesOf(...recorded(series, [[2], [2], [2], [3], [1]]));
  assert.equal(each.what, "Rate of each flow");
  const names = each.rates.map(({ info }) => info.instance);
  assert.deepEqual(names, ["camera-2", "camera-10", "sink"]);
  // Another cell of the page has them.
  const means = ratesOf(...recorded(series, [[2], [2], null, null, null]));
  assert.equal(means.what, "Mean rate per flow");
  assert.deepEqual(
    means.rates.map(({ index }) => index),
    [0, 1],
  );
});

test("lines of flows have the names of endpoints, and differ without their colours", () => {
  const eight = Array.from({ length: 8 }, (_, at) => flow("video", `camera${at}`));
  const four = Array.from({ length: 4 }, (_, at) => flow("tcp", `sink${at}`));
  const keys = keysOf([...eight, ...four].map((info, index) => ({ info, index })));
  const [video, tcp] = [keys.slice(0, 8), keys.slice(8)];
  assert.deepEqual([video[0].label, tcp[3].label], ["camera0", "sink3, TCP"]);
  assert.equal(new Set(video.map(({ dash }) => dash)).size, 8);
  assert.equal(new Set(video.map(({ colour }) => colour)).size, 8);
  assert.equal(new Set(tcp.map(({ dash }) => dash)).size, 4);
  assert.ok(tcp.every(({ dash, colour, width }) => dash && colour === "var(--ink)" && width === 1));
  assert.ok(video.every(({ width }) => width === undefined));
});

test("the flows without a line are a grey area between two rates", () => {
  const series = [shared("others_least_bps"), shared("others_most_bps")];
  const [low, high] = [
    [1, 2, null, 4],
    [5, 6, 7, 8],
  ];
  const [envelope, ...more] = envelopesOf(...recorded(series, [low, high]));
  assert.deepEqual([envelope, more], [{ bin_s: 1, low, high }, []]);
  assert.deepEqual(envelopesOf(...recorded(series, [null, null])), []);
  const chart = { px: (t) => 10 * t, py: (value) => 100 - value };
  const drawn = outline(envelope, chart);
  const stretches = [
    "5.0 95.0L15.0 94.0L15.0 98.0L5.0 99.0",
    "30.0 92.0L40.0 92.0L40.0 96.0L30.0 96.0",
  ];
  assert.equal(drawn, stretches.map((points) => `M${points}Z`).join(""));
  const line = { style: "line", bin_s: 1, values: [2, 2, 2, 2] };
  const spec = { lines: [line], envelopes: [envelope], x: [0, 3], floating: false };
  const ends = domain(spec).map((end) => Math.round(100 * end));
  assert.deepEqual(ends, [0, 742], "7 and 6 % of it, in sight");
});

/** Gives each trial two films, a TCP flow and the range of others, as shares of what its link carried. */
function withFlows(data) {
  const carried = data.series.findIndex(({ name }) => name === "link.down.throughput_bps");
  const of = [flow("video", "camera-a"), flow("video", "camera-b"), flow("tcp", "sink")];
  data.series.push(...of, shared("others_least_bps"), shared("others_most_bps"));
  for (const trial of data.trials)
    for (const share of [0.4, 0.3, 0.2, 0.01, 0.05])
      trial.series.push(trial.series[carried].map((value) => value && share * value));
}

const caption =
  /^Rate of each flow \(dotted: all flows of link down; grey: its rate; shaded: the other flows, /;

/** What the first chart in a part of the page has: its title, its key, and how many lines and areas. */
async function first(page, part) {
  const figure = page.locator(`${part} figure`).first();
  const keys = await figure.locator(".key").allTextContents();
  const lines = await figure.locator("path.trace").count();
  const areas = await figure.locator("path.envelope").count();
  return { title: await figure.locator("figcaption").textContent(), keys, lines, areas };
}

test("a board opens the flows of one repetition, and of all on demand", { skip }, async () => {
  const { page, faults } = await open(await altered("matrix", "flows", withFlows));
  assert.equal(await page.$("#flows"), null);
  await page.click("#board tbody td button >> nth=0");
  const one = await first(page, ".opened");
  assert.match(one.title, caption);
  assert.deepEqual(one.keys, ["camera-a", "camera-b", "sink, TCP"]);
  assert.deepEqual([one.lines, one.areas], [5, 1], "three flows, all of them and the rate");
  await page.selectOption(".opened select", { label: "all repetitions" });
  const all = await first(page, ".opened");
  assert.deepEqual([all.lines, all.areas], [10, 2]);
  assert.deepEqual(faults, []);
});

test("a page without a board has the charts of a cell", { skip }, async () => {
  const { page, faults } = await open(await altered("quick", "flows-quick", withFlows));
  assert.equal(await page.$("#board"), null);
  const one = await first(page, "#flows");
  assert.match(one.title, caption);
  assert.deepEqual([one.lines, one.areas], [5, 1]);
  const cells = await page.locator("#flows select option").allTextContents();
  assert.deepEqual(cells, ["reno", "cubic"]);
  await page.selectOption("#flows select", { label: "cubic" });
  assert.match((await first(page, "#flows")).title, caption);
  assert.deepEqual(faults, []);
});
