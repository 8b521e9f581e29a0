// The built page in headless Chromium, opened from the disk with synthetic data.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const skip = existsSync(executablePath) ? false : `no Chromium at ${executablePath}`;
const run = promisify(execFile);
const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

let browser;
let folder;
/** The report of each kind of synthetic folder: a promise of its file. */
const reports = new Map();

/** The program that `SUIRO_SYNTHETIC` names, as `scripts/test` has built it; else it is built now. */
function program() {
  if (process.env.SUIRO_SYNTHETIC) return process.env.SUIRO_SYNTHETIC;
  const cargo = ["build", "--quiet", "--workspace", "--example", "synthetic"];
  execFileSync("cargo", cargo, { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
  const built = process.env.CARGO_TARGET_DIR ?? join(root, "target");
  return join(built, "debug/examples/synthetic");
}

/** The report of such a folder, once it is written. */
const synthetic = (kind) => reports.get(kind);

before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), "suiro-page-"));
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  browser = await chromium.launch({ executablePath, args });
  // All at once and during the tests, which take no longer.
  const written = program();
  for (const kind of ["quick", "flawed", "matrix", "study", "diff"]) {
    const dir = join(folder, kind);
    const report = run(written, [dir, kind]).then(() => join(dir, "report.html"));
    // A failure is reported where the report is requested.
    report.catch(() => {});
    reports.set(kind, report);
  }
});

after(async () => {
  await browser?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Opens a report; fails the test on any console error or any request but the page itself. */
async function open(file, options = {}, drawn = "path.trace") {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  // Far longer than any page takes, also next to the other tests on a busy machine.
  page.setDefaultTimeout(300_000);
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) faults.push(message.text());
  });
  const requests = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  // A level line has no height, so that a browser does not call it visible.
  await page.waitForSelector(drawn, { state: "attached" });
  return { page, faults, requests };
}

const paths = (page, panel) =>
  page.$$eval(`svg[data-panel="${panel}"] path.trace`, (all) =>
    all.map((path) => path.getAttribute("d")),
  );

test("opens from the disk, alone and without fault", { skip }, async () => {
  const { page, faults, requests } = await open(await synthetic("quick"));
  assert.equal(requests.filter((url) => !/^(data|blob):/.test(url)).length, 1, requests.join("\n"));
  for (const panel of ["throughput_down", "window", "rtt", "queue", "buffer", "rung", "latency"]) {
    const drawn = await paths(page, panel);
    assert.ok(drawn.length >= 2, `${panel} draws both cells`);
    assert.ok(
      drawn.every((d) => !d.includes("NaN")),
      `${panel} has no NaN`,
    );
    assert.ok(
      drawn.some((d) => d.length > 100),
      `${panel} is not empty`,
    );
  }
  assert.match(await page.textContent("#cells"), /Goodput/);
  assert.match(await page.textContent("#validity"), /2 of 2 trials valid/);
  assert.deepEqual(faults, []);
});

test("the first screen: what happened, in numbers, why, then the plots", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  const briefs = await page.$$eval(".briefs li", (all) => all.map((one) => one.textContent));
  assert.equal(briefs.length, 2, "a sentence for each cell");
  for (const brief of briefs) assert.match(brief, /^(reno|cubic): .*(stall|lost).*\.$/);
  const top = (selector) =>
    page.$eval(selector, (element) => element.getBoundingClientRect().top + scrollY);
  const order = ["h1", ".briefs", "#cells", "#why", "#figures", "#validity", "#provenance"];
  const tops = await Promise.all(order.map(top));
  assert.deepEqual(
    tops,
    [...tops].sort((a, b) => a - b),
  );
  const table = await page.$eval("#cells table", (it) => it.getBoundingClientRect().top);
  assert.ok(table < 900, `the numbers are on the first screen: ${table} px`);
  assert.deepEqual(faults, []);
});

test("all metrics, their button and the glossary are the same", {
  skip,
}, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  const button = page.locator("#cells > button");
  const all = Number((await button.textContent()).match(/^All ([0-9]+) metrics$/)[1]);
  await button.click();
  assert.equal(await page.locator("#cells table tbody tr").count(), all);
  assert.equal(await page.locator("#cells .glossary dt").count(), all);
  assert.deepEqual(faults, []);
});

test("the legend hides a cell and Shift shows it alone", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  const both = (await paths(page, "rtt")).length;
  await page.click(".legend button >> nth=0");
  assert.equal((await paths(page, "rtt")).length, both / 2);
  assert.equal(await page.getAttribute(".legend button >> nth=0", "aria-pressed"), "false");
  await page.click(".legend button >> nth=0", { modifiers: ["Shift"] });
  assert.equal(await page.getAttribute(".legend button >> nth=0", "aria-pressed"), "true");
  assert.equal(await page.getAttribute(".legend button >> nth=1", "aria-pressed"), "false");
  assert.deepEqual(faults, []);
});

test("distributions follow the cells and the time shown", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  const curves = () =>
    page.$$eval(".distributions figure:first-child path", (all) =>
      all.map((path) => path.getAttribute("d")),
    );
  const points = () => page.$$eval(".distributions circle", (all) => all.length);
  const whole = await curves();
  assert.equal(whole.length, 2);
  for (const curve of whole) {
    const heights = [...curve.matchAll(/V([\d.]+)/g)].map(([, y]) => Number(y));
    assert.ok(heights.length > 20 && !curve.includes("NaN"));
    assert.deepEqual(
      heights,
      [...heights].sort((a, b) => b - a),
      "a share only grows",
    );
    assert.equal(heights.at(-1), 18, "all of the time is at or below the greatest value");
  }
  assert.equal(await points(), 2, "a point for each valid trial");
  await page.locator('svg[data-panel="rtt"]').focus();
  await page.keyboard.press("+");
  assert.ok((await curves()).every((curve, index) => curve.length < (whole[index]?.length ?? 0)));
  await page.click(".legend button >> nth=0");
  assert.equal((await curves()).length, 1);
  assert.equal(await points(), 1);
  await page.locator(".distributions select >> nth=0").selectOption({ index: 0 });
  assert.equal((await curves()).length, 1);
  assert.deepEqual(faults, []);
});

test("a drag zooms every figure, a double click shows all again", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  const whole = await paths(page, "window");
  const figure = page.locator('svg[data-panel="throughput_down"]');
  await figure.scrollIntoViewIfNeeded();
  const box = await figure.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 60);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 4 });
  await page.mouse.up();
  assert.ok(String(await paths(page, "window")) !== String(whole), "zoomed");
  await figure.dblclick();
  assert.ok(String(await paths(page, "window")) === String(whole), "all again");
  assert.deepEqual(faults, []);
});

test("the keyboard moves a cursor at which every figure shows its values", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"));
  await page.focus('svg[data-panel="rtt"]');
  await page.keyboard.press("ArrowRight");
  const told = await page.textContent('figure:has(svg[data-panel="buffer"]) output');
  assert.match(told, /\d.*s$/);
  const before = await page.textContent(".clock");
  await page.keyboard.press("Shift+ArrowRight");
  assert.notEqual(await page.textContent(".clock"), before);
  await page.keyboard.press("+");
  assert.equal(await page.isEnabled('button:text-is("All")'), true);
  assert.deepEqual(faults, []);
});

test("saved figures are SVG files that stand alone", { skip }, async () => {
  const { page, faults } = await open(await synthetic("quick"), { colorScheme: "dark" });
  for (const button of ['button:text-is("Save SVG")', "button.save >> nth=2"]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
    const text = readFileSync(await download.path(), "utf8");
    const found = await page.evaluate((svg) => {
      const parsed = new DOMParser().parseFromString(svg, "image/svg+xml");
      return {
        broken: parsed.querySelector("parsererror")?.textContent ?? null,
        root: parsed.documentElement.localName,
        traces: parsed.querySelectorAll("path.trace").length,
        words: parsed.documentElement.textContent,
      };
    }, text);
    assert.equal(found.broken, null);
    assert.equal(found.root, "svg");
    assert.ok(found.traces >= 2);
    assert.match(found.words, /Synthetic data.*time since the trial began, s/s);
    assert.ok(!text.includes("var("), "no variable is left");
    assert.match(text, /#0671b1/, "light colours, whatever the theme");
  }
  assert.deepEqual(faults, []);
});

test("invalid and missing trials are shown prominently, with their reasons", { skip }, async () => {
  const { page, faults } = await open(await synthetic("flawed"));
  const alarm = await page.textContent(".alarm");
  assert.match(alarm, /2 of 9 trials not valid/);
  assert.match(alarm, /the link was late: p99 1840 µs/);
  assert.match(alarm, /it was not run/);
  await page.click("#validity summary");
  // A browser fires the event after opening.
  await page.locator("#validity .trial").nth(8).waitFor();
  assert.equal(await page.locator("#validity .trial").count(), 9);
  await page.selectOption('select[aria-label="repetition"]', { label: "mean of repetitions" });
  assert.ok((await paths(page, "window")).length >= 3);
  assert.deepEqual(faults, []);
});

test("many cells stay usable: filtered by axis, sorted by metric", { skip }, async () => {
  const { page, faults } = await open(await synthetic("matrix"));
  assert.match(await page.textContent(".told"), /6 of 12 cells shown/);
  await page.click('.chip:text-is("all")');
  assert.match(await page.textContent(".told"), /0 of 12 cells shown/);
  await page.click('.chip:text-is("cubic")');
  assert.match(await page.textContent(".told"), /4 of 12 cells shown/);
  const column = () =>
    page.$$eval("#cells tbody tr td:nth-child(2) span", (all) =>
      all.map((cell) => Number(cell.textContent)),
    );
  await page.click("#cells thead button >> nth=0");
  const sorted = await column();
  assert.deepEqual(
    sorted,
    [...sorted].sort((a, b) => b - a),
  );
  assert.deepEqual(faults, []);
});

test("latency stands over quality and stalls, a chart for each link", { skip }, async () => {
  const html = readFileSync(await synthetic("quick"), "utf8");
  const metric = (name, unit) => ({
    ...{ name, label: name, unit, better: "lower", digits: 3, main: true, doc: "" },
  });
  const metrics = [
    metric("media.latency_p50_ms", "ms"),
    metric("media.latency_p95_ms", "ms"),
    metric("flow.goodput_mean_bps", "bit/s"),
    metric("video.freeze_s", "s"),
  ];
  const axes = [
    { name: "protocol", labels: ["dash", "webrtc", "moq"] },
    { name: "link", labels: ["slow", "fast"] },
  ];
  const cells = axes[0].labels.flatMap((protocol, p) =>
    axes[1].labels.map((link, l) => ({
      ...{ label: `${protocol} · ${link}`, brief: null, values: [protocol, link], trials: [] },
      metrics: [100 * (p + 1), 250 * (p + 1), 1e6 * (l + 1), p].map((mean) => ({
        ...{ n: 1, mean, sd: null, ci95: null },
      })),
    })),
  );
  const start = html.indexOf('id="data">') + 'id="data">'.length;
  const end = html.indexOf("</script>", start);
  const data = JSON.parse(html.slice(start, end));
  const rest = { series: [], panels: [], trials: [], findings: [], comparison: null };
  const page_data = { ...data, ...rest, axes, cells, metrics };
  const file = join(folder, "latency.html");
  writeFileSync(file, html.slice(0, start) + JSON.stringify(page_data) + html.slice(end));
  const { page, faults } = await open(file, {}, "#latency svg");
  const titles = await page.$$eval("#latency figcaption", (all) => all.map((it) => it.textContent));
  assert.deepEqual(titles, ["link slow", "link fast"]);
  const marks = await page.$$eval("#latency .latency-mark", (all) =>
    all.map((mark) => ["x1", "x2"].map((x) => Number(mark.querySelector("line").getAttribute(x)))),
  );
  assert.equal(marks.length, 12, "three cells in each of two plots of two charts");
  const lengths = marks.map(([from, to]) => Math.round(to - from));
  assert.ok(lengths[0] > 20 && lengths.every((length) => length === lengths[0]), `${lengths}`);
  const told = await page.$eval("#latency .latency-mark title", (it) => it.textContent);
  assert.match(told, /^dash · slow: media.latency_p50_ms 100 ms/);
  assert.match(await page.textContent("#latency table"), /webrtc200 ms500 ms1(\.00)? Mbit\/s/);
  assert.deepEqual(faults, []);
});

test("a board ranks each column, and a value opens its trials", { skip }, async () => {
  const { page, faults } = await open(await synthetic("matrix"));
  const cells = await page.$$("#board tbody td");
  assert.equal(cells.length, 6, "12 cells, of a third axis the first value");
  const columns = await page.$$eval("#board tbody tr", (rows) => {
    const values = rows.map((row) =>
      [...row.querySelectorAll("td button")].map((button) => [
        Number.parseFloat(button.firstChild.textContent),
        Number(button.querySelector("sub")?.textContent),
      ]),
    );
    return values[0].map((_, column) => values.map((row) => row[column]));
  });
  for (const column of columns) {
    const best = column.filter(([, rank]) => rank === 1);
    assert.ok(best.length > 0, JSON.stringify(column));
    // Equal numbers share a rank, and ranks follow the numbers in one direction.
    const ranks = [...column].sort((a, b) => a[0] - b[0]).map(([, rank]) => rank);
    const sorted = [...ranks].sort((a, b) => a - b);
    assert.ok(
      [sorted, [...sorted].reverse()].some((order) => `${order}` === `${ranks}`),
      `${ranks}`,
    );
  }
  assert.equal(await page.$("#board .opened li"), null);
  await page.click("#board tbody td button >> nth=0");
  assert.ok((await page.$$("#board .opened li a")).length > 0);
  assert.ok((await page.$$("#board .opened path.trace")).length > 0);
  await page.click("#board tbody td button >> nth=0");
  assert.equal(await page.$("#board .opened li"), null);
  assert.deepEqual(faults, []);
});

test("findings stand beside what was published", { skip }, async () => {
  const html = readFileSync(await synthetic("quick"), "utf8");
  const finding = (id, verdict) => ({
    ...{ id, claim: "Vegas < Reno", published: "118", measured: "97", because: "<b>" },
    ...{ holds: { holds: true, "does not hold": false }[verdict] ?? null, verdict },
    ...{ formula: "1 < 2", note: null, judged_in: 1, held_in: 1 },
  });
  const published = { id: "S0", title: "", source: "", notes: null, tables: [], figures: [] };
  const all = ["holds", "does not hold", "inconclusive", null].map((verdict, n) =>
    finding(`S0.${n + 1}`, verdict),
  );
  const file = join(folder, "findings.html");
  const escaped = JSON.stringify(all).replaceAll("<", "\\u003c");
  writeFileSync(
    file,
    html
      .replace('"findings":[]', () => `"findings":${escaped}`)
      .replace('"published":null', () => `"published":${JSON.stringify(published)}`),
  );
  const { page, faults } = await open(file);
  const verdicts = await page.$$eval("#study .badge", (all) => all.map((one) => one.textContent));
  assert.deepEqual(verdicts, ["✓ holds", "✗ does not hold", "≈ inconclusive", "– not judged"]);
  assert.deepEqual(faults, []);
});

test("nothing is wider than a phone of 360 pixels", { skip }, async () => {
  const options = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
  for (const kind of ["quick", "matrix", "study"]) {
    const { page, faults } = await open(await synthetic(kind), options);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${kind}: ${width} px`);
    assert.deepEqual(faults, []);
  }
});

test("dark and light, by preference and by button", { skip }, async () => {
  const { page } = await open(await synthetic("quick"), { colorScheme: "dark" });
  const paper = () =>
    page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const dark = await paper();
  await page.click(".theme");
  const light = await paper();
  assert.equal(light, "rgb(255, 255, 255)");
  assert.notEqual(dark, light);
  await page.emulateMedia({ colorScheme: "light" });
  await page.click(".theme");
  assert.equal(await paper(), dark, "a choice outlives a change of preference");
  await page.emulateMedia({ media: "print" });
  assert.equal(await paper(), light, "paper is white");
});

test("a study stands beside what was measured", { skip }, async () => {
  const { page, faults } = await open(await synthetic("study"));
  const verdicts = await page.$$eval("#study .badge", (all) => all.map((one) => one.textContent));
  assert.equal(verdicts.length, 13);
  assert.ok(
    verdicts.every((text) => /holds|does not hold|inconclusive|not judged/.test(text)),
    verdicts.join(),
  );
  const measured = await page.$$eval("#study .compared td span", (all) => all.length);
  assert.equal(measured, 48, "four tables of twelve numbers");
  for (const id of ["4.2", "4.3", "4.4", "4.5", "4.6", "4.7"]) {
    const drawn = await page.$$eval(`figure[data-figure="${id}"] path.trace`, (all) =>
      all.map((path) => path.getAttribute("d")),
    );
    assert.equal(drawn.length, 3, `figure ${id} draws every TCP`);
    assert.ok(
      drawn.every((d) => d.length > 100 && !d.includes("NaN")),
      `figure ${id} is not empty`,
    );
  }
  assert.deepEqual(faults, []);
});

/** Texts that a results folder may hold, by the names of their fields; the rest are words that the report itself chooses. */
const TEXTS =
  /^(title|scenario|command|text|label|labels|values|doc|folder|sentence|what|evidence|link|host|log|subject|system|cpu|kernel|invalid_because|warnings|settings|versions)$/;
const HOSTILE = `"'></script><img src=x onerror="globalThis.ran = true"><a href="javascript:0">`;

function hostile(value, field) {
  if (typeof value === "string") return TEXTS.test(field) ? value + HOSTILE : value;
  if (Array.isArray(value)) return value.map((item) => hostile(item, field));
  if (value === null || typeof value !== "object") return value;
  const inherited = (key) => (TEXTS.test(field) && typeof value[key] === "string" ? field : key);
  const entries = Object.entries(value).map(([key, item]) => [key, hostile(item, inherited(key))]);
  return Object.fromEntries(entries);
}

test("what a results folder calls things is text, never markup", { skip }, async () => {
  const html = readFileSync(await synthetic("flawed"), "utf8");
  const from = html.indexOf(">", html.indexOf(' id="data"')) + 1;
  const to = html.indexOf("</script>", from);
  const changed = JSON.stringify(hostile(JSON.parse(html.slice(from, to)), "")).replaceAll(
    "<",
    "\\u003c",
  );
  const file = join(folder, "hostile.html");
  writeFileSync(file, html.slice(0, from) + changed + html.slice(to));
  const { page, faults, requests } = await open(file);
  for (const details of await page.$$("details:not([open]) > summary")) {
    await details.evaluate((summary) => summary.click());
  }
  const shown = await page.textContent("body");
  assert.ok(shown.split("<img src=x").length > 20, "the names are shown as they are");
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  assert.equal(await page.locator("img[src=x], a[href^='javascript:']").count(), 0);
  assert.equal(requests.filter((url) => !/^(data|blob):/.test(url)).length, 1, requests.join("\n"));
  assert.deepEqual(faults, []);
});

test("a comparison: verdicts, causes and the trials themselves", { skip }, async () => {
  const { page, faults, requests } = await open(await synthetic("diff"), {}, "path.cdf");
  assert.equal(requests.filter((url) => !/^(data|blob):/.test(url)).length, 1, requests.join("\n"));
  assert.match(await page.textContent("h1"), /Results compared: A, B/);
  const cells = await page.$$eval(".compared-cell h3", (all) => all.map((it) => it.textContent));
  assert.equal(cells.length, 2, "a part for each cell");
  for (const cell of cells) assert.match(cell, /3 pairs of trials with the same seed/);
  const rows = () => page.locator(".compared-cell >> nth=0").locator("table.diff tbody tr").count();
  const changed = await rows();
  assert.ok(changed > 0, "the players differ");
  await page.selectOption(".compared-cell select >> nth=0", "all");
  assert.ok((await rows()) > changed);
  assert.equal(await page.locator("path.cdf").count(), 2, "a line for each folder");
  assert.equal(await page.locator("#trials circle").count(), 12 + 2, "trials, and a mean of each");
  await page.selectOption("#trials .legend select", { index: 1 });
  assert.equal(await page.locator("#trials circle").count(), 6 + 2, "those of one cell");
  for (const d of await page.$$eval("path.cdf", (all) => all.map((it) => it.getAttribute("d"))))
    assert.ok(!d.includes("NaN"));
  assert.deepEqual(faults, []);
});
