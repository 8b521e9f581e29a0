// What the page's style must have for every word of the records, and for readers who see fewer colours.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { deuteranope, difference, lab, linear } from "./colour.mjs";

const read = (path) => readFileSync(new URL(`../src/${path}`, import.meta.url), "utf8");
const style = read("style.css");

/** Colours nearer than this (CIEDE2000) are hard to tell apart. */
const LEAST = 10;

/** The colours whose names match, by theme: what the dark theme does not name it has from the light one. */
function colours(pattern) {
  const [light, dark] = style.split('[data-theme="dark"] {').map((part) => {
    const found = part.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g);
    return new Map(
      [...found].flatMap(([, name, hex]) => (pattern.test(name) ? [[name, hex]] : [])),
    );
  });
  return { light, dark: new Map([...light, ...dark]) };
}

test("CIEDE2000 is that of Sharma, Wu and Dalal (2005), table 1", () => {
  const pairs = [
    [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
    [[50, 2.5, 0], [73, 25, -18], 27.1492],
    [[22.7233, 20.0904, -46.694], [23.0331, 14.973, -42.5619], 2.0373],
    [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
  ];
  for (const [a, b, expected] of pairs) assert.equal(difference(a, b).toFixed(4), String(expected));
});

test("every cause has a colour", () => {
  const words = read("generated/page.ts").match(/ {2}cause: ("\w+"(?: \| "\w+")*);/)[1];
  const causes = words.split(" | ").map((word) => `why-${JSON.parse(word)}`);
  assert.deepEqual([...colours(/^why-/).light.keys()].sort(), causes.sort());
});

for (const [what, pattern, count] of [
  ["lines", /^c\d$/, 8],
  ["causes", /^why-/, 37],
]) {
  test(`colours of ${what} are told apart by all, and by those who see no green`, () => {
    for (const [theme, found] of Object.entries(colours(pattern))) {
      assert.equal(found.size, count, theme);
      const all = [...found];
      all.forEach(([a, one], index) => {
        for (const [b, other] of all.slice(0, index)) {
          const seen = difference(lab(linear(one)), lab(linear(other)));
          assert.ok(seen >= LEAST, `${theme}: ${a} and ${b}: ${seen.toFixed(1)}`);
          const [left, right] = [one, other].map((hex) => lab(deuteranope(linear(hex))));
          const least = difference(left, right);
          assert.ok(least >= LEAST, `${theme}, deuteranopia: ${a} and ${b}: ${least.toFixed(1)}`);
        }
      });
    }
  });
}
