// What the page of dash.js, hls.js and Shaka Player says a viewer sees.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../players/shown.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { follow } = await import(`data:text/javascript;base64,${code}`);

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
