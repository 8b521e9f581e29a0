// The report page: what was run, whether it can be trusted, the results, the figures.

import { comparison } from "./comparison";
import { load } from "./data";
import { h } from "./dom";
import { figures } from "./figures";
import { headline, provenance } from "./headline";
import { many } from "./many";
import { study } from "./study";
import { table } from "./table";
import { validity } from "./validity";
import { reasons } from "./why";

const root = document.getElementById("page");
if (root) {
  const page = load();
  const hasCells = page.cells.length > 0;
  const sections = [
    headline(page),
    validity(page),
    study(page),
    comparison(page),
    many(page),
    hasCells ? table(page) : h("p", {}, "Nothing was run."),
    figures(page),
    reasons(page),
    provenance(page),
  ];
  root.append(...sections.filter((section) => section !== null));
}
