// What a viewer sees of a video element that a library plays.

import type { Shown } from "../src/generated/players";

/**
 * The state that the element's events lead to. A library may halt it by a speed of 0, for which the element has no event but
 * that of the speed: Shaka Player does so until enough is buffered. Before anything was shown, that belongs to the start.
 */
export function follow(
  video: Pick<HTMLVideoElement, "playbackRate" | "addEventListener">,
): () => Shown {
  let state: Shown = "starting";
  let begun = false;
  const halted = (): Shown => (begun ? "stalled" : "starting");
  video.addEventListener("playing", () => {
    state = "playing";
  });
  video.addEventListener("waiting", () => {
    if (state === "playing") state = halted();
  });
  video.addEventListener("ended", () => {
    state = "ended";
  });
  return () => {
    if (state === "playing" && video.playbackRate === 0) return halted();
    begun ||= state === "playing";
    return state;
  };
}
