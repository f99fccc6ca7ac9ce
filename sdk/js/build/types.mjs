// A project with a tsconfig.json is checked against the SDK's types before anything is made of it.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { missing, MissingTool, ProjectFault, SDK, tool } from "./project.mjs";

const config = ({ folder }) => join(folder, "tsconfig.json");

/** What the check needs. */
export const typeTools = (project) => (existsSync(config(project)) ? ["typescript"] : []);

export async function checkTypes(project) {
  const file = config(project);
  if (!existsSync(file)) return;
  const { default: ts } = await tool("typescript", project);
  // TypeScript 7 is another program, without this interface.
  if (!ts?.createProgram) throw new MissingTool(missing(["typescript"], project.folder));
  const read = ts.readConfigFile(file, ts.sys.readFile);
  const parsed = ts.parseJsonConfigFileContent(read.config ?? {}, ts.sys, project.folder, {
    noEmit: true,
    // Also where nothing has been installed.
    paths: {
      "@opilio/plugin": [join(SDK, "src/index.d.ts")],
      "@opilio/plugin/testing": [join(SDK, "src/testing.d.ts")],
    },
  });
  const program = ts.createProgram(parsed.fileNames, parsed.options);
  const problems = [read.error, ...parsed.errors, ...ts.getPreEmitDiagnostics(program)].filter(Boolean);
  if (problems.length === 0) return;
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => project.folder, getNewLine: () => "\n" };
  throw new ProjectFault(`${ts.formatDiagnostics(problems, host)}${project.folder} does not build`);
}
