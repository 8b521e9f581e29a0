// Making elements.

type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | EventListener | null | undefined>;

const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(element: E, props: Props, children: Child[]): E {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child || child === "") element.append(child);
  return element;
}

/** An HTML element; a function among the properties listens to the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), props, children);
}

/** Draws a part of the page again. The element with the focus keeps it, by its `data-focus`, though it is a new one. */
export function refocused(box: Element, redraw: () => void): void {
  const before = document.activeElement;
  const name = before && box.contains(before) ? before.getAttribute("data-focus") : null;
  redraw();
  if (name === null || before?.isConnected) return;
  const same = [...box.querySelectorAll<HTMLElement>("[data-focus]")];
  same.find((it) => it.getAttribute("data-focus") === name)?.focus({ preventScroll: true });
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag) as SVGElementTagNameMap[K], props, children);
}
