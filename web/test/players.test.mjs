// What the page of dash.js, hls.js and Shaka Player says a viewer sees, and what it asks of dash.js.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

async function load(name) {
  const source = join(dirname(fileURLToPath(import.meta.url)), "../players", name);
  const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
  const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}
const { follow } = await load("shown.ts");
const { dash } = await load("dash.ts");

/** The states after each of these: an event, or a speed that the library sets. */
function states(steps) {
  const video = Object.assign(new EventTarget(), { playbackRate: 1 });
  const state = follow(video);
  return steps.map((step) => {
    if (typeof step === "number") video.playbackRate = step;
    else video.dispatchEvent(new Event(step));
    return state();
  });
}

test("a stall lasts from where the media ends until frames move", () => {
  const seen = states(["waiting", "playing", "waiting", "playing", 1.05, "ended"]);
  assert.deepEqual(seen, ["starting", "playing", "stalled", "playing", "playing", "ended"]);
});

test("a library that halts the element stalls, however much the element has", () => {
  // Media came again, and the library waits for more.
  const seen = states(["playing", "waiting", 0, "playing", 1, 0, 1]);
  const stalled = ["stalled", "stalled", "stalled"];
  assert.deepEqual(seen, ["playing", ...stalled, "playing", "stalled", "playing"]);
});

test("before anything was shown, a library that waits has not begun", () => {
  const seen = states([0, "playing", "waiting", "playing", 1, "waiting"]);
  assert.deepEqual(seen, ["starting", "starting", "starting", "starting", "playing", "stalled"]);
});

const job = {
  manifest: "http://server/live.mpd",
  buffer_s: 12,
  target_latency_s: 1,
  rules: "dynamic",
  estimate: "moof",
  catch_up: "steps",
  speed_change: null,
  max_drift_s: null,
  cmcd: null,
};

/** The settings that the library is given for a job; `old`: the library is version 4. */
function settings(job, old) {
  let given = null;
  const player = {
    initialize: () => undefined,
    on: () => undefined,
    updateSettings: ({ streaming }) => {
      given = streaming;
    },
    ...(old && { getBitrateInfoListFor: () => [] }),
  };
  globalThis.dashjs = { MediaPlayer: () => ({ create: () => player }) };
  dash(job, {}, assert.fail);
  return given;
}

test("L2A and LoL+ of dash.js 5 run alone, as those of dash.js 4 do", () => {
  // What is active in Settings.js of 5.2.1: the two of Dynamic, and three others.
  const others = ["insufficientBufferRule", "switchHistoryRule", "abandonRequestsRule"];
  const usual = ["throughputRule", "bolaRule", ...others].map((rule) => [rule, { active: true }]);
  const running = (rules) => {
    const all = { ...Object.fromEntries(usual), ...settings({ ...job, rules }, false).abr.rules };
    return Object.keys(all).filter((rule) => all[rule].active);
  };
  assert.deepEqual(running("dynamic"), ["throughputRule", "bolaRule", ...others]);
  assert.deepEqual(running("throughput"), ["throughputRule", ...others]);
  assert.deepEqual(running("bola"), ["bolaRule", ...others]);
  assert.deepEqual(running("l2a"), ["l2ARule"]);
  assert.deepEqual(running("lolp"), ["loLPRule"]);
});

test("dash.js 4 has one strategy, which decides that itself", () => {
  const strategy = (rules) => settings({ ...job, rules }, true).abr.ABRStrategy;
  assert.deepEqual(["dynamic", "l2a", "lolp"].map(strategy), ["abrDynamic", "abrL2A", "abrLoLP"]);
});
