// Whether the figures can be trusted: invalid trials prominently, a good run in one line.

import { h } from "./dom";
import { count, quantity, whole } from "./format";
import type {
  Cable,
  Check,
  EndpointLateness,
  LinkTotals,
  Page,
  PageFlow,
  PageTrial,
  ScreenOutcome,
} from "./generated/page";
import { machineName } from "./machines";

/** Trials whose details are shown; more only say how many there are. */
const DETAILED = 200;
/** A cell with more characters is wrapped. */
const LONG = 48;
/** Invalid trials and warnings that are listed. */
const LISTED = 200;

/** Trials that are not valid, for the head of the page; null if all are. */
export function alarm(page: Page): HTMLElement | null {
  const invalid = page.trials.filter((trial) => !trial.valid && trial.state !== "skipped");
  return invalid.length ? alarmed(page, invalid) : null;
}

/** The section on validity. */
export function validity(page: Page): HTMLElement {
  const invalid = page.trials.filter((trial) => !trial.valid && trial.state !== "skipped");
  const skipped = page.trials.filter((trial) => trial.state === "skipped");
  const section = h("section", { id: "validity", "aria-labelledby": "validity-title" });
  section.append(h("h2", { id: "validity-title" }, "Validity"));
  section.append(h("p", { class: invalid.length ? "" : "well" }, ...verdict(page)));
  if (skipped.length) section.append(notTried(page, skipped));
  section.append(...warned(page), ...unseen(page));
  const details = h(
    "details",
    {},
    h("summary", {}, "Self-checks, links and endpoints of each trial"),
  );
  // Built when first opened: a hundred trials have thousands of figures here.
  details.addEventListener(
    "toggle",
    () => {
      if (page.many) {
        const drawn = "suiro report DIR --trial N draws the page of trial N";
        const words = page.trials.some((trial) => trial.own_page)
          ? "see each trial's own page, or its trial.json"
          : `see a trial's trial.json; ${drawn}`;
        details.append(h("p", {}, words));
        return;
      }
      if (details.childElementCount === 1)
        details.append(...page.trials.slice(0, DETAILED).map((t) => trialDetails(page, t)));
      if (page.trials.length > DETAILED)
        details.append(h("p", {}, `and ${page.trials.length - DETAILED} more: see trial.json`));
    },
    { once: true },
  );
  section.append(details);
  return section;
}

function name(page: Page, trial: PageTrial): string {
  const label = page.cells[trial.cell]?.label ?? "";
  return page.trials.some((other) => other.repetition > 1)
    ? `${label}, repetition ${trial.repetition}`
    : label;
}

function reasons(page: Page, trials: PageTrial[]): HTMLElement {
  const items = trials
    .slice(0, LISTED)
    .map((trial) =>
      h(
        "li",
        {},
        h("b", {}, name(page, trial)),
        ` ${trial.invalid_because ?? missing(page)} `,
        h("code", {}, trial.folder),
      ),
    );
  const more = trials.length - items.length;
  return h("ul", {}, ...items, more > 0 ? h("li", {}, `and ${more} more`) : null);
}

/** Why a trial has no reason here: a page of very many trials has those of the first alone. */
function missing(page: Page): string {
  return page.many
    ? "its reason is not on this page: see summary.parquet"
    : "no reason was recorded";
}

function notTried(page: Page, skipped: PageTrial[]): HTMLElement {
  const heading = `${whole(skipped.length)} of ${count(page.trials.length, "trial")} skipped: this machine is missing something they need`;
  return h("div", { class: "skipped" }, h("h3", {}, heading), reasons(page, skipped));
}

/** Screens that have no video or no scores, or whose stamps contradict the records. */
function unseen(page: Page): HTMLElement[] {
  const items = page.trials.flatMap((trial) =>
    trial.screens
      .filter((screen) => screen.problem !== null)
      .map((screen) =>
        h("li", {}, h("b", {}, `${name(page, trial)}, ${screen.endpoint}`), ` ${screen.problem}`),
      ),
  );
  if (!items.length) return [];
  const all = page.trials.reduce((sum, trial) => sum + trial.screens.length, 0);
  const heading = `${whole(items.length)} of ${count(all, "screen")} with problems`;
  return [h("div", { class: "skipped" }, h("h3", {}, heading), h("ul", {}, ...items))];
}

/** What happened in valid trials that a reader of their figures should know. */
function warned(page: Page): HTMLElement[] {
  const items = page.trials.flatMap((trial) =>
    trial.warnings.map((warning) => h("li", {}, h("b", {}, name(page, trial)), ` ${warning}`)),
  );
  if (!items.length) return [];
  const all = page.many?.warnings ?? items.length;
  const shown = items.slice(0, LISTED);
  const left = all - shown.length;
  const where = page.many
    ? ": suiro report DIR --trial N draws the page of trial N, with its own"
    : "";
  const rest = left > 0 && h("li", {}, `and ${whole(left)} more${where}`);
  const heading = h("h3", {}, count(all, "warning"));
  return [h("div", { class: "skipped" }, heading, h("ul", {}, ...shown, rest))];
}

function alarmed(page: Page, invalid: PageTrial[]): HTMLElement {
  const heading = `${whole(invalid.length)} of ${count(page.trials.length, "trial")} not valid`;
  return h(
    "div",
    { class: "alarm", role: "alert" },
    h("h3", {}, heading),
    h("p", {}, "Their values are left out of every mean in the table below."),
    reasons(page, invalid),
  );
}

function verdict(page: Page): (Node | string)[] {
  const run = page.trials.filter((trial) => trial.state !== "skipped");
  const valid = run.filter((trial) => trial.valid).length;
  const { passed, failed, skipped, offered, lost, late, linked } = totals(page);
  const checked = passed + failed + skipped;
  const parts = [`${whole(valid)} of ${count(run.length, "trial")} valid.`];
  if (checked) {
    parts.push(
      `Self-check of the links before the run: ${whole(passed)} of ${whole(checked)} passed${skipped ? `, ${skipped} not measured` : ""}.`,
    );
  }
  if (linked)
    parts.push(
      `The emulator itself lost ${lost ? whole(lost) : "none"} of ${count(offered, "packet")}.`,
    );
  if (late !== null)
    parts.push(`Its lateness (99th percentile) was at most ${quantity(late, "µs")}.`);
  return [parts.join(" ")];
}

interface Totals {
  passed: number;
  failed: number;
  skipped: number;
  offered: number;
  lost: number;
  /** The worst 99th percentile of lateness in µs; null if no link carried a packet. */
  late: number | null;
  /** Whether there were links. */
  linked: boolean;
}

function totals(page: Page): Totals {
  if (page.many) {
    const { checks_passed, checks_failed, checks_skipped, offered, unaccounted, late_p99_us } =
      page.many.totals;
    const [passed, failed, skipped] = [checks_passed, checks_failed, checks_skipped];
    return {
      passed,
      failed,
      skipped,
      offered,
      lost: unaccounted,
      late: late_p99_us,
      linked: offered > 0,
    };
  }
  const checks = page.trials.flatMap((trial) => trial.self_checks).flatMap((check) => check.checks);
  const links = page.trials.flatMap((trial) => trial.links);
  const late = links.flatMap((link) => link.lateness.p99_us ?? []);
  return {
    passed: checks.filter((check) => check.ok === true).length,
    failed: checks.filter((check) => check.ok === false).length,
    skipped: checks.filter((check) => check.ok === null).length,
    offered: links.reduce((sum, link) => sum + link.offered, 0),
    lost: links.reduce((sum, link) => sum + link.unaccounted, 0),
    late: late.length ? Math.max(...late) : null,
    linked: links.length > 0,
  };
}

function trialDetails(page: Page, trial: PageTrial): HTMLElement {
  const state = trial.valid
    ? h("span", { class: "good" }, "valid")
    : trial.state === "skipped"
      ? h("span", {}, "skipped")
      : h("span", { class: "bad" }, "not valid");
  const box = h(
    "div",
    { class: "trial" },
    h("h3", {}, name(page, trial), " ", state),
    h(
      "p",
      { class: "hint" },
      [
        trial.folder,
        `seed ${trial.seed}`,
        ...(trial.duration_s ? [quantity(trial.duration_s, "s")] : []),
        ...(page.machines.length > 1 && trial.machine !== null
          ? [machineName(page, trial.machine)]
          : []),
      ].join(" · "),
    ),
  );
  if (trial.invalid_because) box.append(h("p", { class: "bad" }, trial.invalid_because));
  const checks = trial.self_checks.flatMap((check) =>
    check.checks.map((part) => [
      `${check.link} ${check.direction}${check.attempt > 1 ? `, attempt ${check.attempt}` : ""}`,
      ...checkRow(part),
    ]),
  );
  if (checks.length)
    box.append(table(["link", "self-check", "expected", "measured", "passes", ""], checks));
  if (trial.links.length) {
    box.append(
      table(
        [
          "link",
          "offered",
          "delivered",
          "dropped",
          "queued",
          "unaccounted",
          "late p50",
          "p99",
          "worst",
        ],
        trial.links.map(linkRow),
      ),
    );
  }
  if (trial.cables.length)
    box.append(table(["plain cable", "packets", "offloads"], trial.cables.map(cableRow)));
  if (trial.flows.length) {
    const head = ["flow", "protocol", "ends", "flows", "opened", "closed"];
    box.append(table(head, trial.flows.map(flowRow)));
  }
  const endpoints = trial.endpoints.map((e) => [
    e.name,
    e.kind,
    e.host,
    e.failure ?? (e.signal !== null ? `ended by signal ${e.signal}` : `exit ${e.exit_code ?? "–"}`),
    notRunning(e.lateness),
    e.log,
  ]);
  if (endpoints.length)
    box.append(
      table(["endpoint", "kind", "host", "outcome", "longest without running", "log"], endpoints),
    );
  if (trial.screens.length)
    box.append(table(["screen", "video", "stamps", "scored by", ""], trial.screens.map(screenRow)));
  return box;
}

/** The longest time without running, and what was not watched. */
function notRunning(lateness: EndpointLateness | null): string {
  if (!lateness) return "–";
  const worst = `${quantity(lateness.worst_s, "s")} at ${quantity(lateness.worst_from_s, "s")}`;
  const left = lateness.threads_left_out;
  return left ? `${worst}; up to ${left} threads not watched` : worst;
}

function checkRow(check: Check): string[] {
  const { unit } = check;
  const range = [check.at_least, check.at_most]
    .map((bound) => quantity(bound, unit, 4))
    .join(" … ");
  const verdict = check.ok === null ? "not measured" : check.ok ? "✓" : "✗ failed";
  const measured = quantity(check.measured, unit, 4);
  return [
    check.what,
    check.asked === null ? "no limit" : quantity(check.asked, unit, 4),
    measured,
    range,
    check.note ? `${verdict}: ${check.note}` : verdict,
  ];
}

function screenRow(screen: ScreenOutcome): string[] {
  const { stamps_agree, stamps_differ, stamps_unread } = screen;
  const read = stamps_agree + stamps_differ;
  const stamps = `${whole(stamps_agree)} of ${whole(read)} agree${stamps_unread ? `, ${stamps_unread} unread` : ""}`;
  const tools = Object.entries(screen.scored_by).map(([tool, version]) => `${tool} ${version}`);
  return [
    screen.endpoint,
    screen.video ?? "–",
    read + stamps_unread ? stamps : "–",
    tools.join(", ") || "–",
    screen.problem ?? "",
  ];
}

function flowRow(flow: PageFlow): string[] {
  const { what, protocol, local, remote, opened_s, closed_s } = flow;
  const closed = closed_s === null ? "–" : quantity(closed_s, "s");
  const ends = `${local} – ${remote}`;
  return [what, protocol, ends, whole(flow.flows), quantity(opened_s, "s"), closed];
}

function linkRow(link: LinkTotals): string[] {
  const causes = Object.entries(link.dropped).filter(([, value]) => value > 0);
  const dropped = causes.map(([cause, value]) => `${whole(value)} ${cause}`).join(", ") || "0";
  const { p50_us, p99_us, max_us } = link.lateness;
  const late = [p50_us, p99_us, max_us].map((value) => quantity(value, "µs"));
  return [
    `${link.link} ${link.direction}`,
    whole(link.offered),
    whole(link.delivered),
    dropped,
    whole(link.queued),
    whole(link.unaccounted),
    ...late,
  ];
}

/** Whether packets crossed a cable as they are on a network, and which work its ends offloaded from the CPU. */
function cableRow(cable: Cable): string[] {
  const offloads = [...new Set([...cable.from, ...cable.to])].sort();
  const cut = offloads.filter((name) => name.includes("segmentation"));
  const packets = cut.length ? `✗ combined, up to 64 kB: ${cut.join(", ")}` : "sent one by one";
  return [cable.link, packets, offloads.join(", ") || "none"];
}

function table(head: string[], rows: string[][]): HTMLElement {
  const heads = head.map((text) => h("th", { scope: "col" }, text));
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      ...row.map((text) => {
        const looks = [text.startsWith("✗") && "bad", text.length > LONG && "long"];
        return h("td", { class: looks.filter(Boolean).join(" ") || null }, text);
      }),
    ),
  );
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "small" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...body)),
  );
}
