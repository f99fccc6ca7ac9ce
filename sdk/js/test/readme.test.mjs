// Runs the case of the Rust SDK's README on the same plugin in this README.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { SDK } from "../build/project.mjs";
import { test as testNatively } from "../build/test.mjs";

test("the plugin in the README passes the case", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opilio-readme-"));
  try {
    const [, code] = /```js\n(.*?)```/s.exec(readFileSync(join(SDK, "README.md"), "utf8"));
    writeFileSync(join(folder, "index.js"), code);
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "lazy-images", type: "module", main: "index.js" }));
    symlinkSync(join(SDK, "../rust/tests/cases"), join(folder, "cases"));
    assert.equal(await testNatively(folder), 1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
