// Builds a component from a plugin's folder: checks types, makes a bundle and a world, and runs the engine's toolchain.

import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { dropBorrows, REPAIRED_VERSION } from "./borrows.mjs";
import { componentModule, describe } from "./bundle.mjs";
import { ENGINES, MissingTool, missingToolsMessage, project, requireTools, tool, toolPackage } from "./project.mjs";
import { checkTypes, typeTools } from "./types.mjs";
import { writeWorld } from "./world.mjs";

/** Builds the plugin in `folder`. Writes `out`, or else NAME.wasm beside its package.json. */
export async function build(folder, out) {
  const plugin = project(folder);
  requireTools(["esbuild", ...ENGINES[plugin.engine], ...typeTools(plugin)], plugin);
  await checkTypes(plugin);
  const described = await describe(plugin);
  const kinds = [...new Set(described.flatMap(({ kinds }) => kinds))];
  const scratch = mkdtempSync(join(tmpdir(), "opilio-plugin-"));
  try {
    const contract = writeWorld(scratch, kinds);
    const module = await componentModule(plugin, ["setup", ...kinds].map(camel), contract);
    const component = await engines[plugin.engine](plugin, module, scratch, kinds);
    const file = out ?? join(folder, `${plugin.name}.wasm`);
    writeFileSync(`${file}.new`, component);
    renameSync(`${file}.new`, file);
    const plugins = described.map(({ name }) => name);
    return { file, plugins, bytes: component.length, engine: plugin.engine };
  } finally {
    rmSync(scratch, { recursive: true });
  }
}

const engines = {
  async quickjs(plugin, jsSource, witPath, kinds) {
    const { version } = toolPackage("componentize-qjs", plugin).facts;
    if (version !== REPAIRED_VERSION) {
      throw new MissingTool(`${missingToolsMessage(["componentize-qjs"], plugin.folder)} (found ${version})`);
    }
    const { componentize } = await tool("componentize-qjs", plugin);
    const { component } = await componentize({ witPath, world: "component", jsSource, sync: true });
    return dropBorrows(component, kinds);
  },
  async starlingmonkey(plugin, jsSource, witPath) {
    const { componentize } = await tool("@bytecodealliance/componentize-js", plugin);
    const sourcePath = join(witPath, "component.js");
    writeFileSync(sourcePath, jsSource);
    const { component } = await componentize({
      sourcePath,
      witPath,
      worldName: "component",
      disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
    });
    return component;
  },
};

const camel = (name) => name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase());
