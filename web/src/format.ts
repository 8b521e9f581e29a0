// Numbers and units for people.

/** A unit to print in, and how many base units it is. */
export interface Scale {
  unit: string;
  factor: number;
  /** True of units without steps, such as packets: whole numbers keep all their digits. */
  counts: boolean;
}

const STEPS: Record<string, [string, number][]> = {
  "bit/s": [
    ["Gbit/s", 1e9],
    ["Mbit/s", 1e6],
    ["kbit/s", 1e3],
    ["bit/s", 1],
  ],
  B: [
    ["GB", 1e9],
    ["MB", 1e6],
    ["kB", 1e3],
    ["B", 1],
  ],
  ms: [
    ["s", 1e3],
    ["ms", 1],
  ],
  µs: [
    ["s", 1e6],
    ["ms", 1e3],
    ["µs", 1],
  ],
  ratio: [["%", 0.01]],
};

/** The unit in which values up to `most` of a base unit read well. */
export function scaleFor(unit: string, most: number): Scale {
  // Delays are compared in milliseconds, so they stay so up to ten seconds.
  const slack = unit === "ms" || unit === "µs" ? 10 : 1;
  const steps = STEPS[unit];
  const fit = steps?.find(([, factor]) => Math.abs(most) >= factor * slack) ?? steps?.at(-1);
  if (!fit) return { unit, factor: 1, counts: !["s", "cores", "dB"].includes(unit) };
  return { unit: fit[0], factor: fit[1], counts: false };
}

/** `value` with `digits` significant digits, without exponent; 0 digits: a whole number, with all its digits. */
export function plain(value: number, digits: number): string {
  if (value === 0) return "0";
  if (digits < 1) return value.toFixed(0);
  const rounded = Number(value.toPrecision(digits));
  return rounded.toFixed(decimals(rounded, digits));
}

/** Decimals that show `digits` significant digits of a value. */
function decimals(value: number, digits: number): number {
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  return Math.min(6, Math.max(0, digits - 1 - magnitude));
}

/** A value in its unit; a count keeps all its digits. */
export function shown(value: number, scale: Scale, digits: number): string {
  const scaled = value / scale.factor;
  const whole = scale.counts && Number.isInteger(scaled) && Math.abs(scaled) < 1e9;
  return whole ? String(scaled) : plain(scaled, digits);
}

/** Half an interval about a value: as many decimals as the value shows, and one more if it is small. */
export function margin(half: number, about: number, scale: Scale, digits: number): string {
  const value = about / scale.factor;
  const places =
    value === 0 || (scale.counts && Number.isInteger(value)) ? 1 : decimals(value, digits);
  return (half / scale.factor).toFixed(places);
}

/** A value in the unit that fits it alone. */
export function quantity(value: number | null, unit: string, digits = 3): string {
  if (value === null) return "–";
  const scale = scaleFor(unit, value);
  const text = shown(value, scale, digits);
  // The symbols of seconds end in this letter, too.
  const one = text === "1" && scale.unit.length > 2 && scale.unit.endsWith("s");
  return `${text} ${one ? scale.unit.slice(0, -1) : scale.unit}`.trim();
}

/** The greatest of any number of values, and `least` of none: a call with 100,000 arguments fails. */
export function most(values: number[], least = 0): number {
  return values.reduce((greatest, value) => Math.max(greatest, value), least);
}

/** From the least of some numbers to the greatest, with one decimal at most: `60 to 300`, or `60` if they are the same. */
export function extent(values: number[]): string {
  const sorted = values.map((value) => Number(value.toFixed(1))).sort((a, b) => a - b);
  const [least, greatest] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
  return least === greatest ? whole(least) : `${whole(least)} to ${whole(greatest)}`;
}

/** A whole number with its thousands apart: `10,000`. */
export function whole(n: number): string {
  return n.toLocaleString("en");
}

/** `1 trial`, `2 trials`. */
export function count(n: number, one: string): string {
  return `${whole(n)} ${n === 1 ? one : `${one}s`}`;
}

/** Round positions from `from` to `to`, about `wanted` of them. */
export function ticks(from: number, to: number, wanted: number): number[] {
  const span = to - from;
  if (!(span > 0) || wanted < 1) return [];
  const raw = span / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((st) => st >= raw * 0.8) ?? power * 10;
  const first = Math.ceil(from / step - 1e-9);
  const last = Math.floor(to / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/** A tick's text: as many decimals as the step between ticks needs. */
export function tickText(value: number, all: number[]): string {
  const step = Math.abs((all[1] ?? value) - (all[0] ?? 0)) || 1;
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const exact = Math.abs(step * 10 ** decimals - Math.round(step * 10 ** decimals)) < 1e-6;
  return value.toFixed(Math.min(6, exact ? decimals : decimals + 1));
}

/** A time of RFC 3339 as `2026-01-31 09:05 UTC`. */
export function moment(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d)/.exec(text);
  return match ? `${match[1]} ${match[2]} UTC` : text;
}
