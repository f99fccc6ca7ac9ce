// Writes the contract, and the world of a component with some of its kinds.

import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { ProjectFault, SDK } from "./project.mjs";

/** Writes a world of these kinds and the contract. Returns the contract's version. */
export function writeWorld(folder, kinds) {
  const contract = join(SDK, "wit");
  if (!existsSync(contract)) throw new ProjectFault(`the contract is missing: ${SDK} has no folder wit/`);
  const deps = join(folder, "deps/plugin");
  mkdirSync(deps, { recursive: true });
  const files = readdirSync(contract).filter((file) => file.endsWith(".wit"));
  for (const file of files) copyFileSync(join(contract, file), join(deps, file));
  const version = /package opilio:plugin@([^;]+);/.exec(readFileSync(join(deps, files[0]), "utf8"))[1];
  const included = kinds.map((kind) => `include opilio:plugin/${kind}-plugin@${version};`);
  writeFileSync(join(folder, "world.wit"), `package opilio:component;\nworld component {\n${included.join("\n")}\n}\n`);
  return version;
}
