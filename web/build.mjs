// Builds the page into one HTML file and copies it to where the Rust build includes it.
// `--check` builds and compares instead: it fails if the committed page is stale.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = dirname(fileURLToPath(import.meta.url));
const built = join(web, "dist/report.html");
const committed = join(web, "../crates/report/assets/report.html");

const result = await build({
  entryPoints: { page: join(web, "src/main.ts"), style: join(web, "src/style.css") },
  bundle: true,
  minify: true,
  charset: "utf8",
  target: "es2022",
  format: "iife",
  write: false,
  outdir: join(web, "dist"),
  legalComments: "none",
});
const text = (name) => result.outputFiles.find((file) => file.path.endsWith(name)).text.trim();
const page = readFileSync(join(web, "src/report.html"), "utf8")
  .replace("/*style*/", () => text("style.css"))
  .replace("/*script*/", () => text("page.js").replaceAll("</script", "<\\/script"));

if (process.argv.includes("--check")) {
  if (readFileSync(committed, "utf8") !== page) {
    console.error("crates/report/assets/report.html is stale\nhint: npm --prefix web run build");
    process.exit(1);
  }
} else {
  mkdirSync(dirname(built), { recursive: true });
  writeFileSync(built, page);
  writeFileSync(committed, page);
  console.error(`report.html: ${(page.length / 1024).toFixed(1)} kB before data`);
}
