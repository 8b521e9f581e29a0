// What the page for WebRTC reads from session descriptions.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

async function load(name) {
  const source = join(dirname(fileURLToPath(import.meta.url)), `../webrtc/${name}.ts`);
  const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
  const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}
const { agreed, usable } = await load("session");
const { codec } = await load("statistics");
const { endsPause, isPaused, outsidePauses } = await load("camera");

const ANSWER = [
  "v=0",
  "m=audio 9 UDP/TLS/RTP/SAVPF 111",
  "a=rtpmap:111 opus/48000/2",
  "m=video 9 UDP/TLS/RTP/SAVPF 102 103",
  "a=extmap:4 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
  "a=extmap:5/recvonly http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
  "a=rtpmap:102 H264/90000",
  "a=rtcp-fb:102 transport-cc",
  "a=rtcp-fb:102 nack pli",
  "a=fmtp:102 packetization-mode=1;profile-level-id=42e01f",
  "a=rtpmap:103 rtx/90000",
  "a=fmtp:103 apt=102",
  "",
].join("\r\n");

test("what was agreed on is that of the first video", () => {
  assert.deepEqual(agreed(ANSWER), {
    codec: "H264/90000 packetization-mode=1;profile-level-id=42e01f",
    payload_types: "102 103",
    feedback: "transport-cc, nack pli",
    extensions:
      "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01 " +
      "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time",
  });
});

test("without retransmissions there is one payload type, and without video nothing", () => {
  const alone = ANSWER.replace("102 103", "102").replace(/a=.*:103.*\r\n/g, "");
  assert.equal(agreed(alone).payload_types, "102");
  assert.equal(agreed("v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"), null);
});

test("feedback for all payload types is that of the video, too", () => {
  const line = "a=rtcp-fb:102 nack pli\r\n";
  const more = `${line}a=rtcp-fb:* ack ccfb\r\na=rtcp-fb:103 nack\r\n`;
  assert.equal(agreed(ANSWER.replace(line, more)).feedback, "transport-cc, nack pli, ack ccfb");
});

test("a frame falls into a pause from its beginning on, and no longer at its end", () => {
  const pauses = [
    { from_ms: 1000, to_ms: 2000 },
    { from_ms: 2500, to_ms: 3000 },
  ];
  const times = [999.9, 1000, 1999.9, 2000, 2499, 2500, 3000];
  const paused = times.filter((captured_ms) => isPaused(pauses, captured_ms));
  assert.deepEqual(paused, [1000, 1999.9, 2500]);
});

test("a late camera has missed the frames outside of pauses, and hears of their ends", () => {
  const pauses = [
    { from_ms: 1000, to_ms: 2000 },
    { from_ms: 2500, to_ms: 3000 },
  ];
  // Ten frames in a second, frame 0 at 500 ms: frames 5 to 14 and 20 to 24 fall into the pauses.
  const captured = (number) => 500 + number * 100;
  const missed = (from, before) => outsidePauses(pauses, captured, from, before);
  assert.equal(missed(3, 10), 2);
  assert.equal(missed(10, 17), 2);
  assert.equal(missed(3, 30), 12);
  assert.equal(missed(3, 3), 0);
  assert.equal(missed(4, 3), 0);
  const ends = (after, by) => endsPause(pauses, captured(after), captured(by));
  const found = [ends(3, 14), ends(3, 15), ends(15, 24), ends(3, 26)];
  assert.deepEqual(found, [false, true, false, true]);
});

const CAPABILITIES = [
  { mimeType: "video/VP8" },
  { mimeType: "video/rtx" },
  { mimeType: "video/VP9", sdpFmtpLine: "profile-id=0" },
  { mimeType: "video/VP9", sdpFmtpLine: "profile-id=2" },
  { mimeType: "video/H264", sdpFmtpLine: "packetization-mode=1;profile-level-id=42001f" },
  { mimeType: "video/H264", sdpFmtpLine: "packetization-mode=0;profile-level-id=42e01f" },
  { mimeType: "video/H264", sdpFmtpLine: "packetization-mode=1;profile-level-id=42e01f" },
  { mimeType: "video/AV1", sdpFmtpLine: "level-idx=5;profile=0;tier=0" },
  { mimeType: "video/AV1", sdpFmtpLine: "level-idx=5;profile=1;tier=0" },
];

test("of a codec, only what the viewer's decoder takes is offered", () => {
  const at = (name) => usable(CAPABILITIES, name).map((found) => CAPABILITIES.indexOf(found));
  assert.deepEqual(at("h264"), [6, 4]);
  assert.deepEqual(at("vp8"), [0]);
  assert.deepEqual(at("vp9"), [2]);
  assert.deepEqual(at("av1"), [7]);
});

test("the codec of the statistics is written as in a description", () => {
  const entry = { mimeType: "video/VP9", clockRate: 90000, sdpFmtpLine: "profile-id=0" };
  assert.equal(codec(entry), "VP9/90000 profile-id=0");
  assert.equal(codec({ mimeType: "video/VP8", clockRate: 90000 }), "VP8/90000");
  assert.equal(codec(undefined), null);
});
