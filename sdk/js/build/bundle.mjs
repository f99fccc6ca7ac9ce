// Bundles a plugin's files into one module for the engine.

import { SourceMap } from "node:module";
import { join, relative } from "node:path";

import { MissingTool, ProjectFault, SDK, tool } from "./project.mjs";

const source = (file) => JSON.stringify(join(SDK, "src", file));

/** Bundles a module that imports the plugin. esbuild prints errors in the files. */
export async function bundle(project, contents, platform) {
  const esbuild = await tool("esbuild", project);
  try {
    const { outputFiles } = await esbuild.build({
      absWorkingDir: project.folder,
      stdin: { contents, resolveDir: project.folder, sourcefile: "component.js" },
      bundle: true,
      write: false,
      outdir: project.folder,
      format: "esm",
      platform,
      target: "es2023",
      sourcemap: "external",
      external: ["opilio:*"],
      alias: {
        "@opilio/plugin": join(SDK, "src/index.js"),
        "@opilio/plugin/testing": join(SDK, "src/testing.js"),
      },
      logLevel: "warning",
    });
    const text = (ending) => outputFiles.find(({ path }) => path.endsWith(ending)).text;
    return { code: text(".js"), map: JSON.parse(text(".map")) };
  } catch (problem) {
    if (!problem.errors) throw problem;
    throw new ProjectFault(`${project.folder} does not build`);
  }
}

/** Runs a bundle in this process. */
export const run = ({ code }) => import(`data:text/javascript;base64,${Buffer.from(code).toString("base64")}`);

/** Returns the descriptions of the plugins. */
export async function describe(project) {
  const contents = `
    import plugins from ${JSON.stringify(project.entry)};
    import { describe, plugin } from ${source("plugin.js")};
    export default [plugins].flat().map((one) => describe(plugin(one)));`;
  let described;
  try {
    described = (await run(await bundle(project, contents, "node"))).default;
  } catch (problem) {
    if (problem instanceof ProjectFault || problem instanceof MissingTool || problem.code) throw problem;
    throw new ProjectFault(`${project.entry}: ${problem.message}`);
  }
  return described;
}

/** Returns the module that exports these interfaces of the contract. Their names are in camelCase. */
export async function componentModule(project, interfaces, contract) {
  const u64 = project.engine === "quickjs" ? "(number) => number" : "BigInt";
  const imported = (name) =>
    project.engine === "quickjs"
      ? `import ${name} from "opilio:plugin/${name}@${contract}";`
      : `import * as ${name} from "opilio:plugin/${name}@${contract}";`;
  const contents = `
    ${["log", "counters", "tables"].map(imported).join("\n")}
    import plugins from ${JSON.stringify(project.entry)};
    import { component } from ${source("component.js")};
    import { mapStack } from ${source("places.js")};
    const host = { log, counters, tables, u64: ${u64} };
    const place = (stack) => mapStack(stack, OPILIO_PLACES);
    const exported = component(plugins, host, { version: ${JSON.stringify(project.version)}, place });
    ${interfaces.map((name) => `export const ${name} = exported.${name};`).join("\n")}`;
  const { code, map } = await bundle(project, contents, "neutral");
  // The constant is at the end, so that it does not change line numbers.
  return `${withoutPaths(code)}\nconst OPILIO_PLACES = ${JSON.stringify(places(code, map, project.folder))};\n`;
}

/** Removes comments with paths of this machine. */
const withoutPaths = (code) => code.replace(/^\/\/ \S+$/gm, "//");

/** Returns runs of lines that are consecutive both in the bundle and in their file, for places.js. */
function places(code, map, folder) {
  const sourceMap = new SourceMap(map);
  const files = map.sources.map((file) => {
    const path = join(folder, file);
    return path.startsWith(join(SDK, "src")) || file === "component.js" ? null : relative(folder, path);
  });
  const runs = [];
  code.split("\n").forEach((text, index) => {
    const { originalSource, originalLine, generatedLine } = sourceMap.findEntry(index, text.search(/\S/) + 1);
    if (generatedLine !== index) return;
    const [line, file, original] = [index + 1, map.sources.indexOf(originalSource), originalLine + 1];
    const last = runs.at(-1);
    if (last && last[1] === file && last[2] + line - last[0] === original) return;
    runs.push([line, file, original]);
  });
  return { files, runs };
}
