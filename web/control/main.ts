// The controller's live page: nodes by site, and a move of a stream by choosing it and then a node. All text comes from
// other machines, so it is only ever set as text.

interface Lane {
  stream: number;
  phase: string;
  on: boolean;
  ring_slots: number;
  ring_waiting: number;
  bytes: number;
  repeated: number;
  late: number;
}

interface Site {
  name: string;
  uplink_bps: number;
  used_bps: number;
  material: number[];
}

interface NodeState {
  name: string;
  site: string;
  capacity: number;
  fault: string | null;
  status: { tai_ns: number; lanes: Lane[] } | null;
}

interface Status {
  leads: boolean;
  leader: string;
  running: boolean;
  sites: Site[];
  nodes: NodeState[];
  streams: { stream: number; node: string; stuck: string | null }[];
  events: {
    tai: string;
    what: string;
    stream: number | null;
    node: string | null;
    detail: string;
  }[];
}

const API = "/x-suiro/control/v1.0/";
const EVERY_MS = 500;

let token = "";
let chosen: number | null = null;
/** Bytes and time of each node's lanes at the last look, for rates. */
let before = new Map<string, { bytes: number; at: number }>();

function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  text: string,
  className = "",
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = className;
  return made;
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
  });
}

function gigabits(bps: number): string {
  return `${(bps / 1e9).toFixed(2)} Gbit/s`;
}

async function command(path: string, body: object, done: string): Promise<void> {
  const message = byId("message");
  try {
    const reply = await ask(path, body);
    const said = (await reply.json()) as { error?: string };
    message.textContent = reply.ok ? done : `Refused: ${said.error ?? reply.statusText}`;
  } catch (error) {
    message.textContent = `No answer: ${String(error)}`;
  }
  chosen = null;
}

function streamButton(stream: number): HTMLButtonElement {
  const button = element("button", `stream ${stream}`, "stream");
  button.type = "button";
  button.dataset.stream = String(stream);
  button.setAttribute("aria-pressed", String(chosen === stream));
  button.title = "Choose it, then the node that shall send it";
  return button;
}

function nodeCard(node: NodeState, site: Site, status: Status): HTMLElement {
  const own = status.streams.filter((stream) => stream.node === node.name);
  const lanes = node.status?.lanes ?? [];
  const on = lanes.filter((lane) => lane.on);
  const card = element("div", "", "node");
  card.dataset.node = node.name;
  card.append(element("strong", node.name));
  let state = "standby";
  if (node.fault !== null) state = node.fault;
  else if (node.status === null) state = "not there";
  else if (on.length > 0) state = "on air";
  if (on.length > 0) card.classList.add("on");
  if (node.fault !== null || node.status === null) card.classList.add("bad");
  card.append(` ${state}`);
  for (const stream of own) card.append(streamButton(stream.stream));
  for (const lane of on) {
    const text = `ring ${lane.ring_waiting} of ${lane.ring_slots}; repeated ${lane.repeated}, late ${lane.late}`;
    card.append(element("small", `${text}; ${rate(node, lane)}`));
  }
  for (const stream of own) if (stream.stuck !== null) card.append(element("small", stream.stuck));
  const fits = chosen !== null && site.material.includes(chosen) && own.length < node.capacity;
  if (fits && node.fault === null && node.status !== null) {
    card.classList.add("target");
    card.tabIndex = 0;
    card.setAttribute("role", "button");
  }
  return card;
}

function rate(node: NodeState, lane: Lane): string {
  const key = `${node.name}/${lane.stream}`;
  const at = (node.status?.tai_ns ?? 0) / 1e9;
  const last = before.get(key);
  const now = { bytes: lane.bytes, at };
  next.set(key, now);
  if (last === undefined || at <= last.at) return "rate not yet known";
  return gigabits(((lane.bytes - last.bytes) * 8) / (at - last.at));
}

let next = new Map<string, { bytes: number; at: number }>();

function siteCard(site: Site, status: Status): HTMLElement {
  const card = element("section", "", "site");
  card.append(element("h2", site.name));
  const meter = document.createElement("meter");
  meter.max = site.uplink_bps;
  meter.value = site.used_bps;
  card.append(
    element("small", `${gigabits(site.used_bps)} of ${gigabits(site.uplink_bps)}`),
    meter,
  );
  for (const node of status.nodes)
    if (node.site === site.name) card.append(nodeCard(node, site, status));
  return card;
}

function show(status: Status): void {
  next = new Map();
  byId("sites").replaceChildren(...status.sites.map((site) => siteCard(site, status)));
  before = next;
  const air = status.running ? "on air" : "off air";
  const leads = status.leads
    ? "this controller leads"
    : `another controller leads: ${status.leader}`;
  byId("state").textContent = `${air}; ${leads}`;
  byId("start").hidden = status.running;
  byId("stop").hidden = !status.running;
  byId("log").hidden = false;
  const line = (event: Status["events"][number]) => {
    const about = event.stream === null ? "" : ` stream ${event.stream}`;
    const node = event.node === null ? "" : ` ${event.node}`;
    return element("li", `${event.tai}  ${event.what}${about}${node}: ${event.detail}`);
  };
  byId("events").replaceChildren(...status.events.slice(0, 15).map(line));
}

async function look(): Promise<void> {
  try {
    const reply = await ask("status");
    const signedOut = reply.status === 401;
    byId("login").hidden = !signedOut;
    if (signedOut) {
      byId("sites").replaceChildren();
      byId("log").hidden = true;
      byId("state").textContent = "A token is needed";
      byId("refused").textContent = token === "" ? "" : "The token was refused";
      return;
    }
    show((await reply.json()) as Status);
  } catch (error) {
    byId("state").textContent = `The controller does not answer: ${String(error)}`;
  }
}

function pick(target: EventTarget | null): void {
  if (!(target instanceof Element)) return;
  const stream = target.closest<HTMLElement>("[data-stream]");
  if (stream !== null) {
    const number = Number(stream.dataset.stream);
    chosen = chosen === number ? null : number;
    void look();
    return;
  }
  const node = target.closest<HTMLElement>(".node.target")?.dataset.node;
  if (node !== undefined && chosen !== null) {
    const done = `Stream ${chosen} moves to ${node}`;
    void command("move", { stream: chosen, node }, done).then(look);
  }
}

byId("sites").addEventListener("click", (event) => pick(event.target));
byId("sites").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target instanceof HTMLDivElement) pick(event.target);
});
byId("start").addEventListener("click", () => void command("start", {}, "All streams start"));
byId("stop").addEventListener("click", () => void command("stop", {}, "All streams stop"));
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
