#!/usr/bin/env node
// `opilio-plugin build [DIR] [--out FILE]` makes a component, `opilio-plugin test [DIR]` runs the cases natively.
// Exit codes: 0, 1 for an error in the project, 2 for a missing tool. Messages go to standard error.

import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";

import { build } from "../build/build.mjs";
import { MissingTool, ProjectFault } from "../build/project.mjs";
import { test } from "../build/test.mjs";

const USAGE = `usage: opilio-plugin build [DIR] [--out FILE]   makes a component
       opilio-plugin test [DIR]                 runs the cases in DIR/cases, without a host`;

try {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { out: { type: "string" } } });
  const [command, folder = "."] = positionals;
  if (command === "build") {
    const built = await build(resolve(folder), values.out && resolve(values.out));
    if (!values.out) console.error(`${basename(built.file)}: ${Math.ceil(built.bytes / 1024)} KB, ${built.engine}`);
    console.log(built.plugins.join("\n"));
  } else if (command === "test") {
    console.log(`${await test(resolve(folder))} cases passed`);
  } else {
    console.error(USAGE);
    process.exitCode = 2;
  }
} catch (problem) {
  const known = problem instanceof MissingTool || problem instanceof ProjectFault || problem.code?.startsWith("ERR_PARSE_ARGS");
  console.error(known ? problem.message : problem.stack);
  process.exitCode = problem instanceof MissingTool || problem.code?.startsWith("ERR_PARSE_ARGS") ? 2 : 1;
}
