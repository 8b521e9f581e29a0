// How colours look to people.

/** A colour of CSS as linear red, green and blue (IEC 61966-2-1). */
export function linear(hex) {
  return [1, 3, 5].map((at) => {
    const share = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
}

/** What somebody without the cones for green sees (Machado, Oliveira, Fernandes 2009, severity 1.0). */
export function deuteranope(colour) {
  const rows = [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ];
  const mixed = rows.map((row) => row.reduce((sum, part, at) => sum + part * colour[at], 0));
  return mixed.map((part) => Math.min(1, Math.max(0, part)));
}

/** CIELAB of a linear colour, for the white of D65. */
export function lab([red, green, blue]) {
  const x = (0.4124564 * red + 0.3575761 * green + 0.1804375 * blue) / 0.95047;
  const y = 0.2126729 * red + 0.7151522 * green + 0.072175 * blue;
  const z = (0.0193339 * red + 0.119192 * green + 0.9503041 * blue) / 1.08883;
  const [fx, fy, fz] = [x, y, z].map((t) =>
    t > 216 / 24389 ? Math.cbrt(t) : ((24389 / 27) * t + 16) / 116,
  );
  return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)];
}

/** How different two colours look: CIEDE2000, with all weights 1. */
export function difference([l1, a1, b1], [l2, a2, b2]) {
  const radians = Math.PI / 180;
  const chroma = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const stretch = 1.5 - 0.5 * Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7));
  const hue = (a, b) => (a === 0 && b === 0 ? 0 : (Math.atan2(b, a) / radians + 360) % 360);
  const [c1, c2] = [Math.hypot(stretch * a1, b1), Math.hypot(stretch * a2, b2)];
  const [h1, h2] = [hue(stretch * a1, b1), hue(stretch * a2, b2)];
  const grey = c1 * c2 === 0;
  let turn = grey ? 0 : h2 - h1;
  if (turn > 180) turn -= 360;
  if (turn < -180) turn += 360;
  const dh = 2 * Math.sqrt(c1 * c2) * Math.sin((turn / 2) * radians);
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  let h = h1 + h2;
  if (!grey) h = Math.abs(h1 - h2) <= 180 ? h / 2 : (h + (h < 360 ? 360 : -360)) / 2;
  const cos = (factor, offset) => Math.cos((factor * h + offset) * radians);
  const t = 1 - 0.17 * cos(1, -30) + 0.24 * cos(2, 0) + 0.32 * cos(3, 6) - 0.2 * cos(4, -63);
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const [sc, sh] = [1 + 0.045 * c, 1 + 0.015 * c * t];
  const bend = 30 * Math.exp(-(((h - 275) / 25) ** 2));
  const rotation = -Math.sin(2 * bend * radians) * 2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  const [dl, dc] = [(l2 - l1) / sl, (c2 - c1) / sc];
  return Math.sqrt(dl ** 2 + dc ** 2 + (dh / sh) ** 2 + rotation * dc * (dh / sh));
}
