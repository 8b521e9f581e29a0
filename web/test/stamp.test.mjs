// The reader of stamps, on strips that the Rust side writes.

import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const source = join(dirname(fileURLToPath(import.meta.url)), "../src/stamp.ts");
const built = await build({ entryPoints: [source], bundle: true, write: false, format: "esm" });
const code = Buffer.from(built.outputFiles[0].contents).toString("base64");
const { readStamp, stampLines, writeStamp } = await import(`data:text/javascript;base64,${code}`);

// What crates/media/src/stamp.rs writes for this stamp, by its own test.
const ROWS = [
  "............##.###.####.###...#.....#.##",
  "###....#.#..##..####.##.##.#..#.##......",
  "...##.##...#####.##.###.#..............#",
];
const STAMP = { frame: 1_234_567, capturedMs: 1_790_000_123_456 };

/** The strip as a canvas has it; `grey` gives the level of a block. */
function picture(width, height, grey = (bit) => (bit ? 255 : 0)) {
  const lines = stampLines(height);
  const data = new Uint8ClampedArray(4 * width * lines).fill(255);
  for (let line = 0; line < lines; line++)
    for (let at = 0; at < width; at++) {
      const row = ROWS.findLastIndex((_, index) => line >= Math.floor((index * height) / 45));
      const column = Array.from({ length: 40 }, (_, index) => index).findLastIndex(
        (index) => at >= Math.floor((index * width) / 40),
      );
      const level = grey(ROWS[row][column] === "#", row, column);
      data.fill(level, 4 * (line * width + at), 4 * (line * width + at) + 3);
    }
  return { width, height: lines, data };
}

test("strips of all sizes are read", () => {
  for (const [width, height] of [
    [320, 180],
    [426, 240],
    [853, 480],
    [1280, 720],
    [1921, 1079],
  ])
    assert.deepEqual(readStamp(picture(width, height), height), STAMP, `${width}×${height}`);
});

test("levels of video range and little contrast are read", () => {
  const faint = picture(640, 360, (bit) => (bit ? 150 : 90));
  assert.deepEqual(readStamp(faint, 360), STAMP);
  assert.equal(
    readStamp(
      picture(640, 360, (bit) => (bit ? 120 : 90)),
      360,
    ),
    null,
  );
});

test("a wrong block makes the strip unreadable", () => {
  for (let column = 1; column < 39; column++)
    for (const row of [0, 1, 2]) {
      const grey = (bit, r, c) => ((r === row && c === column) !== bit ? 255 : 0);
      assert.equal(readStamp(picture(320, 180, grey), 180), null, `row ${row} ${column}`);
    }
});

test("two doubtful blocks are made good, three are too many", () => {
  for (const count of [1, 2, 3]) {
    const grey = (bit, r, c) => (r === 0 && c > 7 && c <= 7 + count ? 128 : bit ? 255 : 0);
    assert.deepEqual(readStamp(picture(320, 180, grey), 180), count < 3 ? STAMP : null);
  }
});

test("what is no picture is null", () => {
  assert.equal(readStamp({ width: 0, height: 0, data: [] }), null);
  assert.equal(readStamp({ width: 320, height: 180, data: [] }), null);
  assert.equal(readStamp(picture(320, 180), 720), null);
  assert.equal(readStamp({ width: 320, height: 180, data: new Uint8Array(4 * 320 * 180) }), null);
});

test("a stamp is written as the Rust side writes it", () => {
  for (const [width, height] of [
    [320, 180],
    [1280, 720],
    [1920, 1080],
  ]) {
    const pixels = width * height;
    const written = new Uint8Array((pixels * 3) / 2).fill(77);
    writeStamp(written, width, height, STAMP);
    const block = (row, column) => {
      const line = Math.floor((row * height) / 45);
      return written[line * width + Math.floor((column * width) / 40)];
    };
    const rows = ROWS.map((row, at) => [...row].map((_, column) => block(at, column)));
    const expected = ROWS.map((row) => [...row].map((bit) => (bit === "#" ? 235 : 16)));
    assert.deepEqual(rows, expected, `${width}×${height}`);
    // The colour is taken out of the strip, and what is below it is as it was.
    const strip = height / 15;
    assert.equal(written[strip * width - 1], 235);
    assert.equal(written[strip * width], 77);
    for (const plane of [pixels, (pixels * 5) / 4]) {
      assert.equal(written[plane + (width / 2) * (strip / 2) - 1], 128);
      assert.equal(written[plane + (width / 2) * (strip / 2)], 77);
    }
  }
});
