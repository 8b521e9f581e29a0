// The controller's live page: nodes by site, and a move of a stream by choosing it and then a node. All text comes from
// other machines, so it is only ever set as text. Elements are kept from one look to the next: a button that was replaced
// between the press and the release of the mouse would not be clicked, and the focus would be lost.
import type {
  ControllerStatus,
  LaneStatus,
  NodeStatus,
  ReceiverStatus,
  SiteStatus,
  StreamStatus,
} from "../src/generated/control";

const API = "/x-suiro/control/v1.0/";
const EVERY_MS = 500;
const EVENTS = 15;
/** A controller that has not answered for so long hangs. */
const PATIENCE_MS = 1500;
/** How long what was said last is shown. */
const SAID_MS = 8000;
/** `n9` comes before `n10`. */
const ORDER = new Intl.Collator("en", { numeric: true });

let token = "";
let chosen: number | null = null;
let last: ControllerStatus | null = null;
/** Bytes and time of each node's lanes at the last look, for rates. */
let before = new Map<string, { bytes: number; at: number }>();
let rates = new Map<string, string>();
/** How far this browser's clock is ahead of the controller's TAI, in ms. */
let ahead = Number.NaN;
/** When the controller answered last, by this browser's clock. */
let answered = Date.now();
let said = 0;

function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.className = className;
  made.append(...children);
  return made;
}

function part(of: HTMLElement, className: string): HTMLElement {
  return of.querySelector(`.${className}`) as HTMLElement;
}

function write(to: HTMLElement, text: string): void {
  if (to.textContent !== text) to.textContent = text;
}

/** Makes the children of an element those of the items: what is there stays, in the items' order. */
function keep<T>(
  parent: HTMLElement,
  items: T[],
  key: (item: T) => string,
  make: (item: T) => HTMLElement,
  update: (made: HTMLElement, item: T) => void,
): void {
  const old = new Map<string | undefined, HTMLElement>();
  for (const child of parent.children as HTMLCollectionOf<HTMLElement>)
    old.set(child.dataset.key, child);
  items.forEach((item, at) => {
    const name = key(item);
    const own = old.get(name) ?? make(item);
    own.dataset.key = name;
    old.delete(name);
    update(own, item);
    if (parent.children[at] !== own) parent.insertBefore(own, parent.children[at] ?? null);
  });
  for (const gone of old.values()) gone.remove();
}

async function ask(path: string, body?: object): Promise<Response> {
  const headers: Record<string, string> = {};
  if (token !== "") headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  return fetch(API + path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(body === undefined ? PATIENCE_MS : 3 * PATIENCE_MS),
  });
}

function rateText(bps: number): string {
  if (bps === 0) return "0 bit/s";
  if (bps >= 1e9) return `${(bps / 1e9).toFixed(2)} Gbit/s`;
  return `${(bps / 1e6).toFixed(bps >= 1e8 ? 0 : 1)} Mbit/s`;
}

function say(text: string, bad = false): void {
  write(byId("message"), text);
  byId("message").classList.toggle("bad", bad);
  said = Date.now();
}

/** Takes away what was said, unless it still asks for something. */
function forget(): void {
  if (chosen === null && Date.now() - said > SAID_MS) say("");
}

async function command(path: string, body: object, done: string): Promise<void> {
  try {
    const reply = await ask(path, body);
    const said = (await reply.json()) as { error?: string };
    if (reply.ok) say(done);
    else say(`Refused: ${said.error ?? reply.statusText}`, true);
  } catch (error) {
    say(`No answer: ${String(error)}`, true);
  }
  await look();
}

function choose(stream: number | null): void {
  chosen = stream;
  say(stream === null ? "" : `Stream ${stream}: choose the node that shall send it, or press Esc`);
  if (last !== null) show(last);
}

/** Rates since the last look: once for each status, however often it is drawn. */
function measure(status: ControllerStatus): void {
  const now = new Map<string, { bytes: number; at: number }>();
  for (const node of status.nodes)
    for (const lane of node.status?.lanes ?? []) {
      const key = `${node.name}/${lane.stream}`;
      const at = (node.status?.tai_ns ?? 0) / 1e9;
      const old = before.get(key);
      now.set(key, { bytes: lane.bytes, at });
      if (old !== undefined && at > old.at)
        rates.set(key, rateText(Math.max(0, (lane.bytes - old.bytes) * 8) / (at - old.at)));
    }
  rates = new Map([...rates].filter(([key]) => now.has(key)));
  before = now;
}

/** The nodes that shall send a stream: its own, then its twins. */
function legs(stream: StreamStatus): string[] {
  return [stream.node, ...stream.twins.map((twin) => twin.node)];
}

/** The nodes that send a stream now. */
function senders(status: ControllerStatus, stream: number): string[] {
  return status.nodes.filter((node) => sends(node, stream)).map((node) => node.name);
}

function makeTwin(stream: StreamStatus): HTMLElement {
  const twin = element("span", "twin", `Stream ${stream.stream}, twin`);
  twin.title = "It sends the same packets over another path";
  return twin;
}

function makeStream(stream: StreamStatus): HTMLElement {
  const button = element("button", "stream", `Stream ${stream.stream}`);
  button.type = "button";
  button.dataset.stream = String(stream.stream);
  button.title = "Choose it, then the node that shall send it";
  return button;
}

function makeNode(node: NodeStatus): HTMLElement {
  const here = element("button", "here");
  here.type = "button";
  here.dataset.here = node.name;
  const head = element("div", "head", element("strong", "", node.name), element("span", "word"));
  const card = element(
    "li",
    "node",
    head,
    element("div", "streams"),
    element("div", "lanes"),
    here,
  );
  card.dataset.node = node.name;
  return card;
}

/** What a node does, in a word, and its class. */
function stateOf(node: NodeStatus, carries: boolean, stores: boolean): [string, string] {
  if (node.fault !== null) return [`Faulty: ${node.fault}`, "bad"];
  if (node.status === null) return ["Not there", "bad"];
  if (node.status.lanes.some((lane) => lane.on)) return ["On air", "on"];
  if ((node.status.receivers ?? []).some((own) => own.on)) return ["Stores", "on"];
  if (stores && node.status.lanes.length === 0) return ["Ready to store", ""];
  return [carries ? "Ready, off air" : "Standby", ""];
}

function updateNode(
  card: HTMLElement,
  node: NodeStatus,
  site: SiteStatus,
  status: ControllerStatus,
): void {
  const own = status.streams.filter((stream) => stream.node === node.name);
  const on = (node.status?.lanes ?? []).filter((lane) => lane.on);
  const twins = status.streams.filter((stream) =>
    stream.twins.some((twin) => twin.node === node.name),
  );
  const stores = status.streams.some((stream) => stream.stored_by.includes(node.name));
  const [word, look] = stateOf(node, own.length + twins.length > 0, stores);
  card.className = `node ${look}`;
  write(part(card, "word"), word);
  keep(
    part(card, "streams"),
    [...own, ...twins],
    (stream) => `${stream.stream} ${stream.node === node.name}`,
    (stream) => (stream.node === node.name ? makeStream(stream) : makeTwin(stream)),
    (chip, stream) => {
      if (stream.node === node.name)
        chip.setAttribute("aria-pressed", String(chosen === stream.stream));
      chip.classList.toggle("dark", status.running && !sends(node, stream.stream));
    },
  );
  const stuck = own.filter((stream) => stream.stuck !== null);
  const lines = [
    ...on.map((lane) => ({ text: laneText(node, lane, on.length > 1), bad: false })),
    ...(node.status?.receivers ?? [])
      .filter((receiver) => receiver.on || receiver.frames > 0)
      .map((receiver) => ({ text: receiverText(receiver), bad: receiver.lost > 0 })),
    ...stuck.map((stream) => ({ text: `Stream ${stream.stream}: ${stream.stuck}`, bad: true })),
  ];
  keep(
    part(card, "lanes"),
    lines.map((line, at) => ({ ...line, at })),
    (line) => String(line.at),
    () => element("small", ""),
    (line, { text, bad }) => {
      write(line, text);
      line.classList.toggle("bad", bad);
    },
  );
  const here = part(card, "here");
  here.hidden = !(chosen !== null && canSend(node, site, status, chosen));
  write(here, `Send stream ${chosen} from ${node.name}`);
}

function sends(node: NodeStatus, stream: number): boolean {
  return (node.status?.lanes ?? []).some((lane) => lane.on && lane.stream === stream);
}

/** Whether a stream may be moved to a node: it is well, has room, the material and a sender, and does not send it already. */
function canSend(
  node: NodeStatus,
  site: SiteStatus,
  status: ControllerStatus,
  stream: number,
): boolean {
  const carried = status.streams.filter((other) => legs(other).includes(node.name));
  const isWell = node.fault === null && node.status !== null;
  const hasSender = (node.status?.lanes ?? []).some((lane) => lane.stream === stream);
  const sendsIt = carried.some((other) => other.stream === stream);
  const hasRoom = carried.length < node.capacity;
  return isWell && hasSender && hasRoom && !sendsIt && site.material.includes(stream);
}

function receiverText(receiver: ReceiverStatus): string {
  const doing = receiver.on ? "stores" : "stored";
  const file = receiver.storing?.split("/").pop();
  const where = file === undefined ? "" : ` in ${file}`;
  return `${doing} stream ${receiver.stream}: ${receiver.frames} frames, ${receiver.lost} lost${where}`;
}

function laneText(node: NodeStatus, lane: LaneStatus, several: boolean): string {
  const rate = rates.get(`${node.name}/${lane.stream}`) ?? "–";
  const which = several ? `${lane.stream}: ` : "";
  const faults = `${lane.repeated} repeated, ${lane.late} late`;
  return `${which}${rate} · ring ${lane.ring_waiting} of ${lane.ring_slots} · ${faults}`;
}

function makeSite(site: SiteStatus): HTMLElement {
  const meter = element("meter", "meter");
  meter.setAttribute("aria-label", `Uplink of ${site.name}`);
  const head = element("div", "head", element("h2", "", site.name), element("small", "uplink"));
  const card = element("section", "site", head, meter, element("ul", "nodes"));
  card.dataset.site = site.name;
  return card;
}

function updateSite(card: HTMLElement, site: SiteStatus, status: ControllerStatus): void {
  const used = `${rateText(site.used_bps)} of ${rateText(site.uplink_bps)} planned`;
  write(part(card, "uplink"), used);
  const meter = part(card, "meter") as HTMLMeterElement;
  meter.max = site.uplink_bps;
  meter.value = site.used_bps;
  keep(
    part(card, "nodes"),
    status.nodes
      .filter((node) => node.site === site.name)
      .sort((one, other) => ORDER.compare(one.name, other.name)),
    (node) => node.name,
    makeNode,
    (own, node) => updateNode(own, node, site, status),
  );
}

/** The time of day on this browser's clock of a TAI `SECONDS:NANOSECONDS` of the controller's. */
function timeOf(tai: string): string {
  const [seconds = 0, nanoseconds = 0] = tai.split(":").map(Number);
  const at = new Date(seconds * 1e3 + nanoseconds / 1e6 + ahead);
  return `${at.toTimeString().slice(0, 8)}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

function updateEvent(line: HTMLElement, event: ControllerStatus["events"][number]): void {
  const about = [event.what];
  if (event.stream !== null) about.push(`stream ${event.stream}`);
  if (event.node !== null) about.push(event.node);
  write(part(line, "what"), about.join(" "));
  write(part(line, "detail"), event.detail.replace(/\b\d{9,}:\d{1,9}\b/g, timeOf));
}

/** What matters most, in a line. */
function headline(status: ControllerStatus): { text: string; bad: boolean } {
  const numbers = status.streams.map((stream) => stream.stream);
  const dark = status.running ? numbers.filter((own) => senders(status, own).length === 0) : [];
  const missing = status.streams.filter(
    (stream) => status.running && senders(status, stream.stream).length < legs(stream).length,
  );
  const single = missing.map((own) => own.stream).filter((own) => !dark.includes(own));
  const onAir = dark.length === 0 ? "On air" : `On air without ${list(dark)}`;
  const parts = [status.running ? onAir : "Off air"];
  if (single.length > 0) parts.push(`${list(single)} without a twin`);
  if (status.storing) parts.push("storing");
  if (status.unwritten !== null) parts.push(`not saved: ${status.unwritten}`);
  parts.push(
    status.leads
      ? `${status.name} leads`
      : `this controller does not lead; leader: ${status.leader}`,
  );
  return { text: parts.join("; "), bad: dark.length > 0 || status.unwritten !== null };
}

function list(streams: number[]): string {
  const word = streams.length === 1 ? "stream" : "streams";
  return `${word} ${[...streams].sort((one, other) => one - other).join(", ")}`;
}

function show(status: ControllerStatus): void {
  keep(
    byId("sites"),
    [...status.sites].sort((one, other) => ORDER.compare(one.name, other.name)),
    (site) => site.name,
    makeSite,
    (card, site) => updateSite(card, site, status),
  );
  const { text, bad } = headline(status);
  write(byId("state"), text);
  byId("state").classList.toggle("bad", bad);
  byId("start").hidden = status.running;
  byId("stop").hidden = !status.running;
  const stores = status.streams.some((stream) => stream.stored_by.length > 0);
  byId("store").hidden = status.storing || !stores;
  byId("keep").hidden = !status.storing;
  byId("log").hidden = false;
  keep(
    byId("events"),
    status.events.slice(0, EVENTS).map((event, at) => ({ ...event, at })),
    (event) => `${event.tai} ${event.what} ${event.stream} ${event.node}`,
    (event) =>
      element(
        "li",
        "event",
        element("time", "", timeOf(event.tai)),
        element("span", "what"),
        element("span", "detail"),
      ),
    updateEvent,
  );
}

function signOut(): void {
  last = null;
  byId("sites").replaceChildren();
  byId("log").hidden = true;
  byId("start").hidden = true;
  byId("stop").hidden = true;
  byId("store").hidden = true;
  byId("keep").hidden = true;
  byId("state").classList.remove("bad");
  write(byId("state"), "A token is needed");
  write(byId("refused"), token === "" ? "" : "The token was refused");
}

async function look(): Promise<void> {
  try {
    const reply = await ask("status");
    const signedOut = reply.status === 401;
    byId("login").hidden = !signedOut;
    document.body.classList.remove("stale");
    answered = Date.now();
    forget();
    if (signedOut) {
      signOut();
      return;
    }
    last = (await reply.json()) as ControllerStatus;
    // Once, so that times keep their order; again if a clock was set.
    const now = Date.now() - last.tai_ns / 1e6;
    if (!(Math.abs(now - ahead) < 1000)) ahead = now;
    measure(last);
    show(last);
  } catch (error) {
    document.body.classList.add("stale");
    byId("state").classList.add("bad");
    const since = Math.round((Date.now() - answered) / 1000);
    const hangs = error instanceof DOMException && error.name === "TimeoutError";
    const what = hangs ? "The controller hangs" : "The controller does not answer";
    write(byId("state"), `${what}; below is its state ${since} s ago`);
  }
}

byId("sites").addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const stream = event.target.closest<HTMLElement>("[data-stream]")?.dataset.stream;
  if (stream !== undefined) choose(chosen === Number(stream) ? null : Number(stream));
  const node = event.target.closest<HTMLElement>("[data-here]")?.dataset.here;
  if (node === undefined || chosen === null) return;
  const moving = chosen;
  choose(null);
  void command("move", { stream: moving, node }, `Stream ${moving} moves to ${node}`);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && chosen !== null) choose(null);
});
byId("start").addEventListener("click", () => void command("start", {}, "All streams start"));
byId("stop").addEventListener("click", () => {
  if (confirm("Take all streams off air?")) void command("stop", {}, "All streams stop");
});
byId("store").addEventListener(
  "click",
  () => void command("start-storing", {}, "All recordings begin"),
);
byId("keep").addEventListener(
  "click",
  () => void command("stop-storing", {}, "All recordings end"),
);
byId<HTMLFormElement>("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId<HTMLInputElement>("token").value.trim();
  void look();
});

async function turn(): Promise<void> {
  await look();
  setTimeout(turn, EVERY_MS);
}
void turn();
