// The report page, in the order of a reader's questions: what happened, in numbers, why, over time; then what a study
// published, whether the figures can be trusted, and how it was run.

import { board } from "./board";
import { comparison } from "./comparison";
import { report } from "./data";
import { h } from "./dom";
import { figures } from "./figures";
import { headline, provenance } from "./headline";
import { latency } from "./latency";
import { many } from "./many";
import { flows } from "./rates";
import { study } from "./study";
import { table } from "./table";
import { alarm, validity } from "./validity";
import { reasons } from "./why";

/** Cells whose table is longer than a screen. */
const LONG = 12;

const root = document.getElementById("page");
if (root) {
  const page = report();
  const hasCells = page.cells.length > 0;
  const numbers = hasCells ? table(page) : h("p", {}, "Nothing was run.");
  const charts = latency(page);
  const overview = board(page) ?? flows(page);
  const sections = [
    headline(page),
    alarm(page),
    // A long table would hide them.
    ...(page.cells.length > LONG ? [overview, charts, numbers] : [numbers, charts, overview]),
    reasons(page),
    comparison(page),
    many(page),
    figures(page),
    study(page),
    validity(page),
    provenance(page),
  ];
  root.append(...sections.filter((section) => section !== null));
}
