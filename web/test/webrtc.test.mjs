// What the page for WebRTC reads from session descriptions.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../webrtc/session.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { agreed } = await import(`data:text/javascript;base64,${code}`);

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
