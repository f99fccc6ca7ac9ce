// Generates the contract's types from `wit/` with jco. `npm run types` writes them, `npm run types -- --check` compares them.
// jco is installed in the SDK's folder (`npm install`) or in the shared toolchains (OPILIO_TOOLCHAINS).

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { SDK, toolPackage } from "../build/project.mjs";
import { writeWorld } from "../build/world.mjs";
import { KINDS } from "../src/plugin.js";

const target = join(dirname(fileURLToPath(import.meta.url)), "contract");
const scratch = mkdtempSync(join(tmpdir(), "opilio-types-"));
writeWorld(scratch, Object.keys(KINDS));
// The media type `*/*` would end a comment.
for (const file of readdirSync(join(scratch, "deps/plugin"))) {
  const path = join(scratch, "deps/plugin", file);
  writeFileSync(path, readFileSync(path, "utf8").replaceAll("*/", "*\\/"));
}
const made = join(scratch, "made");
const { home, facts } = toolPackage("@bytecodealliance/jco", { folder: SDK });
execFileSync(process.execPath, [join(home, facts.bin.jco), "guest-types", scratch, "-n", "component", "-o", made, "-q"]);
const folder = join(made, "interfaces");
const files = readdirSync(folder).sort();
// Plugins only borrow resources and never dispose of them.
const content = (file) =>
  readFileSync(file, "utf8")
    .replace(/ implements (Partial<)?Disposable>?/g, "")
    .replace(/^ *\[Symbol\.dispose\].*\n/gm, "")
    .trimEnd() + "\n";
if (process.argv.includes("--check")) {
  const stale = files.filter((file) => content(join(folder, file)) !== content(join(target, file)));
  if (stale.length > 0) {
    console.error(`types differ from the contract: ${stale.join(", ")}; run npm run types`);
    process.exitCode = 1;
  }
} else {
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const file of files) writeFileSync(join(target, file), content(join(folder, file)));
}
rmSync(scratch, { recursive: true });
