// Tests of the types with the TypeScript compiler.

import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { checkTypes } from "../build/types.mjs";

test("the types accept valid plugins and refuse invalid ones", async () => {
  await checkTypes({ folder: join(dirname(fileURLToPath(import.meta.url)), "types") });
});
