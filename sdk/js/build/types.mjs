// Checks a project with a tsconfig.json against the SDK's types.

import { existsSync } from "node:fs";
import { join } from "node:path";

import { missingToolsMessage, MissingTool, ProjectFault, SDK, tool } from "./project.mjs";

const config = ({ folder }) => join(folder, "tsconfig.json");

/** Returns the tools that the check needs. */
export const typeTools = (project) => (existsSync(config(project)) ? ["typescript"] : []);

/** Throws a `ProjectFault` with the compiler's messages if there are type errors. */
export async function checkTypes(project) {
  const file = config(project);
  if (!existsSync(file)) return;
  const { default: ts } = await tool("typescript", project);
  // TypeScript 7 does not have this API.
  if (!ts?.createProgram) throw new MissingTool(missingToolsMessage(["typescript"], project.folder));
  const read = ts.readConfigFile(file, ts.sys.readFile);
  const parsed = ts.parseJsonConfigFileContent(read.config ?? {}, ts.sys, project.folder, {
    noEmit: true,
    // So that the SDK need not be installed.
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
