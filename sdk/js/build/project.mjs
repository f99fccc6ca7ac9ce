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
  "@bytecodealliance/componentize-js": "0.22.0",
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
  if (!(engine in ENGINES)) {
    throw new ProjectFault(`${file}: opilio.engine is ${JSON.stringify(engine)}; it is ${Object.keys(ENGINES).join(" or ")}`);
  }
  return { folder, entry, engine, name: facts.name.split("/").at(-1), version: facts.version ?? "0.0.0" };
}

/** The folder of a package: the project's own, or one that all projects share; none where it is not installed. */
function home(name, folder) {
  // Set by `opilio plugin build`.
  const shared = process.env.OPILIO_TOOLCHAINS;
  const places = [folder, SDK, ...(shared ? [join(shared, "js")] : [])];
  // What only `import` may load, `resolve` does not find, but for its folder.
  const folders = places.flatMap((place) => createRequire(join(place, "package.json")).resolve.paths(name));
  return folders.map((one) => join(one, name)).find((one) => existsSync(join(one, "package.json")));
}

/** A package's folder and its package.json. */
export function toolPackage(name, { folder }) {
  const found = home(name, folder);
  if (!found) throw new MissingTool(missing([name], folder));
  return { home: found, facts: JSON.parse(readFileSync(join(found, "package.json"), "utf8")) };
}

/** What a package exports. */
export async function tool(name, project) {
  const { home, facts } = toolPackage(name, project);
  const root = facts.exports?.["."] ?? facts.exports ?? facts.main;
  const entry = root.import ?? root.default ?? root;
  return await import(pathToFileURL(join(home, entry.default ?? entry)));
}

/** Makes sure that all of these are there, so that whoever lacks several is told of all at once. */
export function needs(names, { folder }) {
  const lacking = names.filter((name) => !home(name, folder));
  if (lacking.length > 0) throw new MissingTool(missing(lacking, folder));
}

/** What to do about tools that are not there. */
export function missing(names, folder) {
  const said = names.map((name) => `${name} ${PINNED[name]}`).join(", ");
  const packages = names.map((name) => `${name}@${PINNED[name]}`).join(" ");
  return `${said} ${names.length > 1 ? "are" : "is"} not installed: npm install --prefix ${inShell(folder)} --save-dev --save-exact ${packages}`;
}

/** A path as it is written in a command: in quotes where a shell would otherwise take it apart. */
const inShell = (path) => (/^[\w@+:,./\\~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** What builds with an engine; componentize-js lacks a package where it may choose its jco itself. */
export const ENGINES = {
  quickjs: ["componentize-qjs"],
  starlingmonkey: ["@bytecodealliance/componentize-js", "@bytecodealliance/jco"],
};
