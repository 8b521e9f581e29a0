// What the page for Media over QUIC writes and reads.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = join(dirname(fileURLToPath(import.meta.url)), "..");

async function load(name) {
  const entryPoints = [join(web, name)];
  const built = await build({ entryPoints, bundle: true, write: false, format: "esm" });
  const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
  return import(`data:text/javascript;base64,${code}`);
}
const { Bytes, Reader, message } = await load("moq/wire.ts");
const { read, write } = await load("moq/container.ts");
const { choose } = await load("moq/view.ts");
const { Decoding, Order } = await load("moq/order.ts");

const hex = (bytes) => Buffer.from(bytes).toString("hex");

test("numbers are written as the draft's examples, and read back", async () => {
  // draft-ietf-moq-transport-18 §1.4.1.
  const examples = {
    37: "25",
    15293: "bbbd",
    494878333: "f01d7f3e7d",
    2893212287960: "faa1a0e403d8",
  };
  for (const [number, expected] of Object.entries(examples)) {
    const read = await Reader.of(Buffer.from(expected, "hex")).number();
    assert.equal(read, Number(number));
  }
  for (const number of [
    0,
    127,
    128,
    16383,
    16384,
    2 ** 21,
    2 ** 28,
    2 ** 35,
    2 ** 42,
    2 ** 49,
    2 ** 53 - 1,
  ]) {
    const bytes = new Bytes().number(number).done();
    assert.equal(await Reader.of(bytes).number(), number);
  }
  assert.equal(hex(new Bytes().number(15293).number(37).done()), "bbbd25");
});

test("a message has its type, its length and its body", async () => {
  const bytes = message(0x2f00, new Bytes().namespace("yard/camera"));
  assert.equal(hex(bytes), `af00000d02${hex(Buffer.from("\x04yard\x06camera", "latin1"))}`);
  const { type, body } = await Reader.of(bytes).message();
  assert.equal(type, 0x2f00);
  assert.equal(await body.namespace(), "yard/camera");
  assert.equal(await body.ended(), true);
  await assert.rejects(body.number(), /ended too early/);
});

test("objects hold a time, a mark and a picture", () => {
  const mark = { number: 70_000, references: 0, rate_bps: 1, waited_ms: 0.5 };
  const key = new Uint8Array([0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x65, 9]);
  const object = write(1_800_000_000_123_456, mark, key);
  const picture = read(object);
  assert.equal(picture.time_us, 1_800_000_000_123_456);
  assert.deepEqual({ ...picture.mark }, mark);
  assert.deepEqual([picture.key, hex(picture.data)], [true, hex(key)]);
  const other = read(new Uint8Array([7, 0, 0, 1, 0x41, 2]));
  assert.deepEqual([other.time_us, other.mark, other.key], [7, null, false]);
  assert.throws(() => read(new Uint8Array([0xc0, 1])), /timestamp/);
});

test("the best track that can be played is chosen", () => {
  const renditions = {
    a: { codec: "avc3.42e028", container: { kind: "legacy" }, bitrate: 5 },
    b: { codec: "avc1.64001f", container: "legacy", bitrate: 9 },
    c: { codec: "avc1.64001f", container: "cmaf", bitrate: 99 },
    d: { codec: "vp8", bitrate: 99 },
  };
  assert.deepEqual(choose({ video: { renditions } }), { name: "b", codec: "avc1.64001f" });
  assert.throws(() => choose({}), /no video/);
});

/** A frame with that number that needs the one so many before it; 0: it is a key frame. */
const frame = (number, references) => ({ key: references === 0, mark: { number, references } });

test("frames are decoded in order, and a lost one is given up after two seconds", () => {
  const order = new Order();
  const given = (now_ms) => {
    const numbers = [];
    for (;;) {
      const next = order.give(now_ms);
      if (next === null) return numbers;
      numbers.push(next.mark.number);
    }
  };
  for (const number of [6, 5, 8]) order.take(frame(number, number === 5 ? 0 : 1), number);
  assert.deepEqual(given(8), [5, 6]);
  order.take(frame(10, 0), 10);
  order.take(frame(11, 1), 11);
  assert.deepEqual(given(2010), []);
  assert.deepEqual(given(2011), [10, 11]);
  // After a restart, only a key frame is next.
  order.take(frame(13, 1), 13);
  order.restart();
  order.take(frame(12, 1), 14);
  assert.deepEqual(given(14), []);
  order.take(frame(14, 0), 15);
  assert.deepEqual(given(15), [14]);
});

test("a decoder falls behind when all frames of half a second are late", () => {
  const decoding = new Decoding();
  const enters = (time_us, at_ms, now_ms) =>
    decoding.enters({ time_us, at_ms, key: false }, now_ms);
  // The first one waits for the decoder.
  assert.equal(enters(0, 0, 0), false);
  assert.equal(enters(33, 33, 700), false);
  assert.equal(decoding.leaves(0, 800), false);
  assert.equal(decoding.leaves(33, 801), false);
  // Late once, and in time again.
  enters(1000, 1000, 1000);
  assert.equal(decoding.leaves(1000, 1050), false);
  const late = (at_ms) => {
    enters(at_ms, at_ms, at_ms);
    return decoding.leaves(at_ms, at_ms + 101);
  };
  assert.deepEqual([2000, 2200, 2400, 2500].map(late), [false, false, false, true]);
  // One that does not come out at all.
  decoding.clear();
  enters(5000, 5000, 5000);
  assert.equal(enters(5101, 5101, 5101), false);
  assert.equal(enters(5601, 5601, 5601), true);
  assert.equal(decoding.size, 3);
  decoding.clear();
  assert.equal(decoding.size, 0);
});
