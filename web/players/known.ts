/** A finite number that is not negative, or null: libraries throw, or give NaN, before they know. */
export function known(ask: () => number): number | null {
  try {
    const value = ask();
    return Number.isFinite(value) && value >= 0 ? value : null;
  } catch {
    return null;
  }
}
