// Reports of synthetic folders in headless Chromium, for the tests of the page.

import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
export const skip = existsSync(executablePath) ? false : `no Chromium at ${executablePath}`;
const run = promisify(execFile);
const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

let browser;
/** The pages that the test has opened. */
const pages = [];
/** Where reports are written. */
export let folder;
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
export const synthetic = (kind) => reports.get(kind);

/** Writes such folders before the tests of a file, and opens a browser for them. */
export function useFolders(...kinds) {
  before(async () => {
    if (skip) return;
    folder = mkdtempSync(join(tmpdir(), "suiro-page-"));
    const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
    browser = await chromium.launch({ executablePath, args });
    // All at once and during the tests, which take no longer.
    const written = program();
    for (const kind of kinds) {
      const dir = join(folder, kind);
      const report = run(written, [dir, kind]).then(() => join(dir, "report.html"));
      // A failure is reported where the report is requested.
      report.catch(() => {});
      reports.set(kind, report);
    }
  });
  // An open page goes on drawing.
  afterEach(() => Promise.all(pages.splice(0).map((page) => page.close())));
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });
}

/** The report of such a folder with other data: what `change` returns, or what it made of what it was given. */
export async function altered(kind, name, change) {
  const html = readFileSync(await synthetic(kind), "utf8");
  const start = html.indexOf('id="data">') + 'id="data">'.length;
  const end = html.indexOf("</script>", start);
  const data = JSON.parse(html.slice(start, end));
  const text = JSON.stringify(change(data) ?? data).replaceAll("<", "\\u003c");
  const file = join(folder, `${name}.html`);
  writeFileSync(file, html.slice(0, start) + text + html.slice(end));
  return file;
}

/** Opens a report; fails the test on any console error or any request but the page itself. */
export async function open(file, options = {}, drawn = "path.trace") {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  pages.push(page);
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
