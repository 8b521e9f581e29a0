// The built page in headless Chromium, opened from the disk with synthetic data.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { altered, open, skip, synthetic, useFolders } from "./pages.mjs";

useFolders("quick", "flawed", "matrix", "study", "diff");

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

test("distributions mark a trial that is not valid, and hold negative values", {
  skip,
}, async () => {
  const { page, faults } = await open(
    await altered("flawed", "negative", (data) => {
      const of = data.series.findIndex(({ name }) => name === "link.down.queue_delay_ms");
      for (const trial of data.trials) {
        trial.series[of] = trial.series[of]?.map((value) => value && -value) ?? null;
        trial.metrics = trial.metrics.map((value) => (value === null ? null : value - 1e9));
      }
      for (const spread of data.cells.flatMap((cell) => cell.metrics))
        if (spread) spread.mean -= 1e9;
    }),
  );
  const figure = ".distributions figure:first-child";
  const inside = async (selector, x, y) => {
    const [width, height] = await page.$eval(selector, (it) =>
      it.ownerSVGElement.getAttribute("viewBox").split(" ").slice(2).map(Number),
    );
    const all = await page.$$eval(selector, (found) =>
      found.map((it) => [it.getAttribute("d"), it.getAttribute("cx"), it.getAttribute("cy")]),
    );
    for (const [d, cx, cy] of all) {
      const xs = d ? [...d.matchAll(/[MH]([-\d.]+)/g)].map(([, at]) => Number(at)) : [Number(cx)];
      const ys = d ? [...d.matchAll(/V([-\d.]+)/g)].map(([, at]) => Number(at)) : [Number(cy)];
      assert.ok(xs.length && xs.every((at) => at >= x && at <= width), `${xs.slice(0, 5)}`);
      assert.ok(ys.length && ys.every((at) => at >= y && at <= height), `${ys.slice(0, 5)}`);
    }
    return all.length;
  };
  assert.equal(await inside(`${figure} path`, 54, 18), 3);
  assert.ok((await inside(".distributions circle", 54, 18)) > 3);
  const opacities = () =>
    page.$$eval(`${figure} path`, (all) =>
      all.map((it) => [it.style.strokeOpacity, it.querySelector("title")?.textContent ?? ""]),
    );
  assert.deepEqual(await opacities(), Array(3).fill(["1", ""]));
  // Of the last cell, the second repetition failed.
  await page.selectOption('select[aria-label="repetition"]', { label: "repetition 2" });
  assert.deepEqual(await opacities(), [
    ["1", ""],
    ["1", ""],
    ["0.35", "not valid"],
  ]);
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
  const metric = (name, unit) => ({
    ...{ name, label: name, unit, better: "lower", digits: 3, main: true, doc: "" },
  });
  const metrics = [
    metric("media.latency_p50_ms", "ms"),
    metric("media.latency_p95_ms", "ms"),
    metric("flow.goodput_mean_bps", "bit/s"),
    metric("video.freeze_s", "s"),
    metric("player.stall_s", "s"),
  ];
  const axes = [
    { name: "protocol", labels: ["dash", "webrtc", "moq"] },
    { name: "link", labels: ["slow", "fast"] },
  ];
  const cells = axes[0].labels.flatMap((protocol, p) =>
    axes[1].labels.map((link, l) => ({
      ...{ label: `${protocol} · ${link}`, brief: null, values: [protocol, link], trials: [] },
      // A player of others: it reports its stalls, and nobody saw its frames.
      metrics: [100 * (p + 1), 250 * (p + 1), 1e6 * (l + 1), p || null, p ? null : 7].map((mean) =>
        mean === null ? null : { n: 1, mean, sd: null, ci95: null },
      ),
    })),
  );
  const rest = { series: [], panels: [], trials: [], findings: [], comparison: null };
  const file = await altered("quick", "latency", (data) => {
    return { ...data, ...rest, axes, cells, metrics };
  });
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
  const table = await page.textContent("#latency table");
  assert.match(table, /dash100 ms250 ms1(\.00)? Mbit\/s7(\.00)? s/);
  assert.match(table, /webrtc200 ms500 ms1(\.00)? Mbit\/s1(\.00)? s/);
  await page.selectOption("#latency select", "link");
  const others = await page.$$eval("#latency figcaption", (all) => all.map((it) => it.textContent));
  assert.deepEqual(others, ["protocol dash", "protocol webrtc", "protocol moq"]);
  assert.deepEqual(faults, []);
});

test("findings stand beside what was published", { skip }, async () => {
  const finding = (id, verdict) => ({
    ...{ id, claim: "Vegas < Reno", published: "118", measured: "97", because: "<b>" },
    ...{ holds: { holds: true, "does not hold": false }[verdict] ?? null, verdict },
    ...{ formula: "1 < 2", note: null, judged_in: 1, held_in: 1 },
  });
  const published = { id: "S0", title: "", source: "", notes: null, tables: [], figures: [] };
  const all = ["holds", "does not hold", "inconclusive", null].map((verdict, n) =>
    finding(`S0.${n + 1}`, verdict),
  );
  const file = await altered("quick", "findings", (data) => {
    return { ...data, findings: all, published };
  });
  const { page, faults } = await open(file);
  const verdicts = await page.$$eval("#study .badge", (all) => all.map((one) => one.textContent));
  assert.deepEqual(verdicts, ["✓ holds", "✗ does not hold", "≈ inconclusive", "– not judged"]);
  assert.deepEqual(faults, []);
});

test("a place of a map with several cells has their mean, and lists them", { skip }, async () => {
  const axes = ["tcp", "queue", "loss"].map((name) => ({
    name,
    labels: [`${name} a`, `${name} b`],
  }));
  const places = Array.from({ length: 8 }, (_, index) => [index >> 2, (index >> 1) & 1, index & 1]);
  // Of the last axis, which is not shown, one value has 10 more: the means go from 5 to 35.
  const means = places.map(([a, b, c]) => 20 * a + 10 * b + 10 * c);
  const column = { mean: means, n: [], sd: [], ci95: [], trials: [] };
  const many = {
    totals: { checks_passed: 0, checks_failed: 0, checks_skipped: 0, offered: 0, unaccounted: 0 },
    values: axes.map((_, axis) => places.map((place) => place[axis])),
    ...{ metrics: [column], cells: places.map((_, index) => index), repetitions: Array(8).fill(1) },
    ...{ durations: Array(8).fill(1), machines: Array(8).fill(null), warnings: 3 },
    // The page has the reasons and the warnings of some trials alone.
    exceptions: [
      { trial: 0, state: "complete", valid: false, invalid_because: null, warnings: [] },
      {
        trial: 1,
        state: "complete",
        valid: true,
        invalid_because: null,
        warnings: ["it was slow"],
      },
    ],
    ...{
      folders: places.map((_, index) => `trials/${index}`),
      own_pages: [0, 1, 2, 3, 4, 5, 6, 7],
    },
  };
  many.totals.late_p99_us = null;
  const file = await altered("quick", "many", (data) => {
    const [metric] = data.metrics;
    const rest = { cells: [], trials: [], series: [], panels: [], causes: [] };
    return { ...data, ...rest, axes, many, metrics: [{ ...metric, label: "M", unit: "" }] };
  });
  const { page, faults } = await open(file, {}, "#many canvas");
  const map = page.locator("#many canvas >> nth=0");
  await map.scrollIntoViewIfNeeded();
  const { width, height } = await map.boundingBox();
  const at = (x, y) => ({ position: { x: width * x, y: height * y } });
  await map.hover(at(0.2, 0.75));
  assert.equal(
    await page.textContent("#many .hint >> nth=0"),
    "mean of 2 cells · tcp a · queue a: M 5.00",
  );
  await map.hover(at(0.8, 0.2));
  assert.equal(
    await page.textContent("#many .hint >> nth=0"),
    "mean of 2 cells · tcp b · queue b: M 35.0",
  );
  // The greatest mean has the last colour: the legend is of the means.
  const colour = await map.evaluate((it) => [
    ...it.getContext("2d").getImageData(it.width * 0.8, it.height * 0.2, 1, 1).data,
  ]);
  assert.deepEqual(colour.slice(0, 3), [253, 231, 37]);
  await map.click(at(0.8, 0.2));
  const listed = await page.$$eval("#many tbody th", (all) => all.map((it) => it.textContent));
  assert.deepEqual(listed, ["tcp b · queue b · loss a", "tcp b · queue b · loss b"]);
  await page.selectOption("#many select >> nth=6", { label: "loss b" });
  await map.hover(at(0.2, 0.75));
  assert.equal(await page.textContent("#many .hint >> nth=0"), "tcp a · queue a · loss b: M 10.0");
  const reason = /its reason is not on this page: see summary\.parquet/;
  assert.match(await page.textContent(".alarm"), reason);
  assert.match(await page.textContent("#validity"), /3 warnings.*it was slow.*and 2 more/s);
  const drawn = () => map.evaluate((it) => it.toDataURL());
  const before = await drawn();
  await page.click(".theme");
  assert.notEqual(await drawn(), before, "the texts have the colour of the theme");
  assert.deepEqual(faults, []);
});

test("several series of a cell have a key, and the cursor names them", { skip }, async () => {
  const file = await altered("quick", "several", (data) => {
    const at = data.series.findIndex(({ panel, style }) => panel === "rtt" && style === "line");
    data.series[at].label = "one";
    data.series.push({ ...data.series[at], label: "other" });
    for (const trial of data.trials) trial.series.push(trial.series[at]);
  });
  const { page, faults } = await open(file);
  const figure = 'figure:has(svg[data-panel="rtt"])';
  const keys = await page.$$eval(`${figure} .legend .key`, (all) =>
    all.map((it) => it.textContent),
  );
  assert.deepEqual(keys, ["one", "other"]);
  const drawn = await page.$$eval(`${figure} path.trace.line`, (all) =>
    all.map((it) => `${it.style.stroke} ${it.getAttribute("stroke-dasharray")}`),
  );
  assert.equal(new Set(drawn).size, 4, "two series of two cells");
  await page.focus('svg[data-panel="rtt"]');
  await page.keyboard.press("ArrowRight");
  assert.match(await page.textContent(`${figure} output`), /reno: one .*reno: other .*cubic: one/);
  assert.deepEqual(faults, []);
});

test("trials that are not valid are marked where they explain something", { skip }, async () => {
  const file = await altered("flawed", "invalid-first", (data) => {
    const [first] = data.trials;
    const other = data.trials.find((trial) => trial.valid && trial !== first);
    Object.assign(first, { valid: false, invalid_because: "late", limits: other.limits });
    const effects = data.trials.find((trial) => trial.effects.length).effects;
    for (const trial of [first, other]) trial.effects = effects;
  });
  const { page, faults } = await open(file);
  const names = await page.$$eval(".why-trial h3", (all) => all.map((it) => it.textContent));
  const marked = names.map((name) => name.endsWith(" not valid"));
  assert.deepEqual([marked[0], marked.at(-1)], [false, true]);
  assert.deepEqual(marked, marked.toSorted(), "those that are valid come first");
  const strip = async (label) => {
    await page.selectOption('select[aria-label="repetition"]', { label });
    const titles = await page.$$eval(".why-strip svg line title", (all) =>
      all.map((it) => it.textContent),
    );
    return titles.filter((title) => title.endsWith("(not valid)")).length;
  };
  assert.equal(await strip("mean of repetitions"), 0);
  assert.ok((await strip("repetition 1")) > 0);
  assert.deepEqual(faults, []);
});

test("the arms of a mean are inside the plot, and an unknown one is not drawn", {
  skip,
}, async () => {
  const file = await altered("quick", "arms", (data) => {
    data.cells.forEach((cell, index) => {
      const known = { n: 2, mean: 1.5, sd: 0.7, ci95: index ? null : 6.353 };
      cell.metrics = cell.metrics.map((spread) => spread && known);
    });
    for (const trial of data.trials)
      trial.metrics = trial.metrics.map((value) => (value === null ? null : trial.cell + 1));
  });
  const { page, faults } = await open(file);
  const scatter = ".distributions figure:last-child svg";
  const [width, height] = await page.$eval(scatter, (it) =>
    it.getAttribute("viewBox").split(" ").slice(2).map(Number),
  );
  const arms = await page.$$eval(`${scatter} g:has(> circle) line`, (all) =>
    all.map((it) => ["x1", "x2", "y1", "y2"].map((name) => Number(it.getAttribute(name)))),
  );
  assert.equal(arms.length, 2, "of the first cell alone");
  for (const [x1, x2, y1, y2] of arms) {
    assert.ok(Math.min(x1, x2) >= 54 && Math.max(x1, x2) <= width - 14, `${x1} ${x2}`);
    assert.ok(Math.min(y1, y2) >= 18 && Math.max(y1, y2) <= height - 34, `${y1} ${y2}`);
  }
  assert.deepEqual(faults, []);
});

test("a button that is drawn again keeps the focus", { skip }, async () => {
  const { page, faults } = await open(await synthetic("matrix"));
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  for (const button of ["#cells button.sort >> nth=1", "#board tbody td button >> nth=1"]) {
    await page.focus(button);
    const before = (await focused()).trim();
    await page.keyboard.press("Enter");
    assert.ok((await focused()).startsWith(before), `${before}: ${await focused()}`);
  }
  await page.focus("#board select >> nth=1");
  await page.selectOption("#board select >> nth=1", { index: 2 });
  assert.equal(await page.evaluate(() => document.activeElement.localName), "select");
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
  assert.equal(verdicts.length, 14);
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
  const file = await altered("flawed", "hostile", (data) => hostile(data, ""));
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

test("a metric without a verdict says whether one side or no pair measured it", {
  skip,
}, async () => {
  const file = await altered("diff", "no-pair", (data) => {
    const [cell] = data.comparisons[0].cells;
    const of = (name) => cell.diff.metrics[name];
    Object.assign(of("flow.goodput_mean_bps"), { verdict: null, difference: null });
    Object.assign(of("player.stall_s"), { verdict: null, difference: null, first: null });
  });
  const { page, faults } = await open(file, {}, "path.cdf");
  const row = (name) =>
    page.locator(".compared-cell >> nth=0").locator(`tr:has(th[title^="${name}:"]) td >> nth=0`);
  assert.equal(await row("flow.goodput_mean_bps").textContent(), "no pair");
  assert.equal(await row("player.stall_s").textContent(), "one side only");
  assert.deepEqual(faults, []);
});
