// What a folder is called, with the look of its lines and points.

import { type Look, lookOf } from "../data";
import { h } from "../dom";
import type { Difference } from "../generated/diff";
import { sample } from "../legend";

/** How a folder looks in every plot. */
export function look(folder: number): Look {
  return lookOf(folder);
}

/** The folder's letter, after a sample of its line. */
export function letter(all: Difference, folder: number): HTMLElement {
  return h("b", { class: "letter" }, sample(look(folder)), all.folders[folder]?.letter ?? "");
}
