// A plugin's folder: its package.json, and where its tools are.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The SDK's own folder. */
export const SDK = dirname(dirname(fileURLToPath(import.meta.url)));

/** The versions that were tried. A newer one may make larger or broken components, so each is named exactly. */
const PINNED = {
  esbuild: "0.25.12",
  typescript: "5.9.3",
  "componentize-qjs": "0.4.5",
  // With a jco of its own choosing it lacks a package.
  "@bytecodealliance/componentize-js": "0.22.0 @bytecodealliance/jco@1.34.0",
  "@bytecodealliance/jco": "1.34.0",
};

/** The project does not build; the message says why. */
export class ProjectFault extends Error {}

/** A tool is not installed; the message says which, and how to get it. */
export class MissingTool extends Error {}

/** Reads a plugin's folder. */
export function project(folder) {
  const file = join(folder, "package.json");
  if (!existsSync(file)) throw new ProjectFault(`${folder} is no plugin of JavaScript: it has no package.json`);
  let facts;
  try {
    facts = JSON.parse(readFileSync(file, "utf8"));
  } catch (problem) {
    throw new ProjectFault(`${file}: ${problem.message}`);
  }
  const entry = join(folder, facts.main ?? "src/index.js");
  if (!existsSync(entry)) throw new ProjectFault(`${file}: main names ${entry}, which is not there`);
  if (typeof facts.name !== "string") throw new ProjectFault(`${file}: there is no name`);
  const engine = facts.opilio?.engine ?? "quickjs";
  if (!["quickjs", "starlingmonkey"].includes(engine)) {
    throw new ProjectFault(`${file}: opilio.engine is ${JSON.stringify(engine)}; it is quickjs or starlingmonkey`);
  }
  return { folder, entry, engine, name: facts.name.split("/").at(-1), version: facts.version ?? "0.0.0" };
}

/** The folder of a package, the project's own or else in the checkout's `target/toolchains/js`, and its package.json. */
export function toolPackage(name, { folder }) {
  const places = [folder, SDK, join(SDK, "../../target/toolchains/js")];
  for (const place of places) {
    // What only `import` may load, `resolve` does not find, but for its folder.
    const folders = createRequire(join(place, "package.json")).resolve.paths(name);
    const home = folders.map((folder) => join(folder, name)).find((folder) => existsSync(join(folder, "package.json")));
    if (home) return { home, facts: JSON.parse(readFileSync(join(home, "package.json"), "utf8")) };
  }
  throw new MissingTool(missing(name, folder));
}

/** What a package exports. */
export async function tool(name, project) {
  const { home, facts } = toolPackage(name, project);
  const root = facts.exports?.["."] ?? facts.exports ?? facts.main;
  const entry = root.import ?? root.default ?? root;
  return await import(pathToFileURL(join(home, entry.default ?? entry)));
}

/** What to do about a tool that is not there. */
export const missing = (name, folder) =>
  `${name} ${PINNED[name]?.split(" ")[0]} is not installed: npm install --prefix ${folder} --save-dev --save-exact ${name}@${PINNED[name]}`;
