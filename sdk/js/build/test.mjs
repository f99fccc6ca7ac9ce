// Runs the cases of a plugin's folder natively, on the same sources as the component.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

import { bundle, run } from "./bundle.mjs";
import { project, ProjectFault, requireTools, SDK } from "./project.mjs";
import { checkTypes, typeTools } from "./types.mjs";

/** Runs the cases and returns their number. */
export async function test(folder) {
  const plugin = project(folder);
  requireTools(["esbuild", ...typeTools(plugin)], plugin);
  await checkTypes(plugin);
  const cases = join(folder, "cases");
  if (!existsSync(cases) || readdirSync(cases).length === 0) throw new ProjectFault(`${cases} has no cases`);
  const { checkCases, plugins } = await run(
    await bundle(
      plugin,
      `export { default as plugins } from ${JSON.stringify(plugin.entry)};
       export { checkCases } from ${JSON.stringify(join(SDK, "src/testing.js"))};`,
      "node",
    ),
  );
  try {
    return checkCases(plugins, cases);
  } catch (problem) {
    throw new ProjectFault(problem.message);
  }
}
