// A plugin's folder: its package.json, and its tools.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The SDK's own folder. */
export const SDK = dirname(dirname(fileURLToPath(import.meta.url)));

/** Tested versions. Newer ones may make larger or broken components, so each is exact. */
const PINNED = {
  esbuild: "0.25.12",
  typescript: "5.9.3",
  "componentize-qjs": "0.4.5",
  "@bytecodealliance/componentize-js": "0.22.0",
  "@bytecodealliance/jco": "1.34.0",
};

/** An error in the project. */
export class ProjectFault extends Error {}

/** A missing tool. The message has the command that installs it. */
export class MissingTool extends Error {}

/** Reads a plugin's folder. */
export function project(folder) {
  const file = join(folder, "package.json");
  if (!existsSync(file)) throw new ProjectFault(`${folder} is not a JavaScript plugin: it has no package.json`);
  let facts;
  try {
    facts = JSON.parse(readFileSync(file, "utf8"));
  } catch (problem) {
    throw new ProjectFault(`${file}: ${problem.message}`);
  }
  const entry = join(folder, facts.main ?? "src/index.js");
  if (!existsSync(entry)) throw new ProjectFault(`${file}: main names ${entry}, which does not exist`);
  if (typeof facts.name !== "string") throw new ProjectFault(`${file}: name is missing`);
  const engine = facts.opilio?.engine ?? "quickjs";
  if (!(engine in ENGINES)) {
    throw new ProjectFault(`${file}: opilio.engine is ${JSON.stringify(engine)}; it must be ${Object.keys(ENGINES).join(" or ")}`);
  }
  return { folder, entry, engine, name: facts.name.split("/").at(-1), version: facts.version ?? "0.0.0" };
}

/** Returns the folder of a package, in the project or shared by all projects. Undefined if it is not installed. */
function home(name, folder) {
  // `opilio plugin build` sets it.
  const shared = process.env.OPILIO_TOOLCHAINS;
  const places = [folder, SDK, ...(shared ? [join(shared, "js")] : [])];
  // `resolve` does not find packages that support only `import`, so this uses its search folders.
  const folders = places.flatMap((place) => createRequire(join(place, "package.json")).resolve.paths(name));
  return folders.map((one) => join(one, name)).find((one) => existsSync(join(one, "package.json")));
}

/** Returns a package's folder and its package.json. */
export function toolPackage(name, { folder }) {
  const found = home(name, folder);
  if (!found) throw new MissingTool(missingToolsMessage([name], folder));
  return { home: found, facts: JSON.parse(readFileSync(join(found, "package.json"), "utf8")) };
}

/** Imports a package. */
export async function tool(name, project) {
  const { home, facts } = toolPackage(name, project);
  const root = facts.exports?.["."] ?? facts.exports ?? facts.main;
  const entry = root.import ?? root.default ?? root;
  return await import(pathToFileURL(join(home, entry.default ?? entry)));
}

/** Throws an error that names all missing tools. */
export function requireTools(names, { folder }) {
  const missing = names.filter((name) => !home(name, folder));
  if (missing.length > 0) throw new MissingTool(missingToolsMessage(missing, folder));
}

/** Returns the message about missing tools, with the command that installs them. */
export function missingToolsMessage(names, folder) {
  const tools = names.map((name) => `${name} ${PINNED[name]}`).join(", ");
  const packages = names.map((name) => `${name}@${PINNED[name]}`).join(" ");
  return `${tools} ${names.length > 1 ? "are" : "is"} not installed: npm install --prefix ${inShell(folder)} --save-dev --save-exact ${packages}`;
}

/** Returns a path for a shell command, in quotes if needed. */
const inShell = (path) => (/^[\w@+:,./\\~-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

/** Tools of each engine. componentize-js needs jco, but does not depend on a working version of it. */
export const ENGINES = {
  quickjs: ["componentize-qjs"],
  starlingmonkey: ["@bytecodealliance/componentize-js", "@bytecodealliance/jco"],
};
