// What the page's style must have for every word of the records.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const read = (path) => readFileSync(new URL(`../src/${path}`, import.meta.url), "utf8");

test("every cause has a colour of its own, light and dark", () => {
  const words = read("generated/page.ts").match(/ {2}cause: ("\w+"(?: \| "\w+")*);/)[1];
  const causes = words.split(" | ").map((word) => JSON.parse(word));
  const found = [...read("style.css").matchAll(/--why-(\w+): (#[0-9a-f]{6});/g)];
  for (const cause of causes) {
    const colours = found.filter(([, name]) => name === cause).map(([, , colour]) => colour);
    assert.equal(colours.length, 2, `${cause} in each of two themes`);
  }
  assert.equal(new Set(found.map(([, , colour]) => colour)).size, 2 * causes.length);
});
