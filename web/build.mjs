// Builds the report page, that of a comparison and that of control into one HTML file each. The pages of players that are not
// ours, of WebRTC and of Media over QUIC become scripts and their HTML. All are copied to where the Rust build includes them.
// `--check` builds and compares instead: it fails if a committed file is stale.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = dirname(fileURLToPath(import.meta.url));
const crates = join(web, "../crates");

async function bundle(entryPoints) {
  const result = await build({
    entryPoints,
    bundle: true,
    minify: true,
    charset: "utf8",
    target: "es2022",
    format: "iife",
    write: false,
    outdir: join(web, "dist"),
    legalComments: "none",
  });
  return (name) => result.outputFiles.find((file) => file.path.endsWith(name)).text.trim();
}

/** A page as one file, with its script and style in their places. */
async function single(html, script, style) {
  const built = await bundle({ page: join(web, script), style: join(web, style) });
  return readFileSync(join(web, html), "utf8")
    .replace("/*style*/", () => built("style.css"))
    .replace("/*script*/", () => built("page.js").replaceAll("</script", "<\\/script"));
}

const page = await single("src/report.html", "src/main.ts", "src/style.css");
const diff = await single("src/report.html", "src/diff/main.ts", "src/diff/style.css");
const control = await single("control/page.html", "control/main.ts", "control/style.css");
const player = await bundle({ page: join(web, "players/main.ts") });
const webrtc = await bundle({
  page: join(web, "webrtc/main.ts"),
  worker: join(web, "webrtc/worker.ts"),
});
const moq = await bundle({
  page: join(web, "moq/main.ts"),
  player: join(web, "moq/player.ts"),
});

const outputs = [
  ["control/page.html", control],
  ["report/assets/report.html", page],
  ["report/assets/diff.html", diff],
  ["players/assets/page.js", `${player("page.js")}\n`],
  ["players/assets/page.html", readFileSync(join(web, "players/page.html"), "utf8")],
  ["webrtc/assets/webrtc.js", `${webrtc("page.js")}\n`],
  ["browser/assets/camera.js", `${webrtc("worker.js")}\n`],
  ["moq/assets/moq.js", `${moq("page.js")}\n`],
  ["moq/assets/moq-player.js", `${moq("player.js")}\n`],
  ["moq/assets/moq.html", readFileSync(join(web, "moq/page.html"), "utf8")],
  ["webrtc/assets/webrtc.html", readFileSync(join(web, "webrtc/page.html"), "utf8")],
];
if (process.argv.includes("--check")) {
  for (const [name, text] of outputs) {
    if (readFileSync(join(crates, name), "utf8") !== text) {
      console.error(`crates/${name} is stale\nhint: npm --prefix web run build`);
      process.exitCode = 1;
    }
  }
} else {
  mkdirSync(join(web, "dist"), { recursive: true });
  writeFileSync(join(web, "dist/report.html"), page);
  for (const [name, text] of outputs) writeFileSync(join(crates, name), text);
  console.error(`report.html: ${(page.length / 1024).toFixed(1)} kB before data`);
}
