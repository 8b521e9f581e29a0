// Several trials side by side, as a viewer saw them.

import { h } from "./dom";
import type { Page } from "./generated/page";

/** The video of `suiro compare`, if it was made. */
export function comparison(page: Page): HTMLElement | null {
  const film = page.comparison;
  if (!film) return null;
  const { file, poster, video } = film;
  const picture = video
    ? h("video", { controls: true, preload: "metadata", playsinline: true, poster, src: video })
    : poster && h("img", { src: poster, alt: "A still of the video" });
  return h(
    "section",
    { id: "comparison", "aria-labelledby": "comparison-title" },
    h("h2", { id: "comparison-title" }, "Side by side"),
    h(
      "p",
      { class: "hint" },
      "What each viewer saw, in step with the source. ",
      h("a", { href: file }, file),
      video ? null : " is too large for this page: open it from the results folder.",
    ),
    picture,
  );
}
