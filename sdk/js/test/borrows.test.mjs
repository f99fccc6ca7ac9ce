// Tests of the repair of componentize-qjs components. The tests repair small modules, run them and record their calls.

import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { BORROWS, dropBorrows, REPAIRED_VERSION } from "../build/borrows.mjs";
import { build } from "../build/build.mjs";
import { MissingTool, SDK } from "../build/project.mjs";

const text = (of) => [of.length, ...Buffer.from(of)];
const section = (id, items) => {
  const content = [items.length, ...items.flat()];
  return [id, content.length, ...content];
};
const [FUNCTION, I32] = [0x60, 0x7f];
const RESULT = 42;

/** Returns a component whose module exports a function of the contract with `params` parameters, and its clean-up function. */
function component(name, params, resources) {
  const drops = resources.map((resource) => [...text("host"), ...text(`[resource-drop]${resource}`), 0, 0]);
  // Indexes of functions begin with the imports.
  const [call, after] = [1 + drops.length, 2 + drops.length];
  const module = [
    ...Buffer.from("\0asm\x01\0\0\0"),
    ...section(1, [
      [FUNCTION, 1, I32, 0],
      [FUNCTION, params, ...Array(params).fill(I32), 1, I32],
      [FUNCTION, 0, 0],
    ]),
    ...section(2, [...drops, [...text("host"), ...text("called"), 0, 2]]),
    ...section(3, [[1], [0]]),
    ...section(7, [
      [...text(`opilio:plugin/${name}`), 0, call],
      [...text(`cabi_post_opilio:plugin/${name}`), 0, after],
    ]),
    // The function reports its call and returns. The clean-up function traps.
    ...section(10, [[6, 0, 0x10, drops.length, 0x41, RESULT, 0x0b], [3, 0, 0x00, 0x0b]]),
  ];
  return Uint8Array.from([...Buffer.from("\0asm\x0d\0\x01\0"), 1, ...leb(module.length), ...module]);
}

const leb = (value) => (value < 128 ? [value] : [(value % 128) | 0x80, ...leb(Math.floor(value / 128))]);

/** Calls the repaired function in a plugin of these kinds, and returns the recorded calls. */
function recordedCalls(name, parameters, resources, kinds = [name.split("@")[0]]) {
  const repaired = dropBorrows(component(name, parameters.length, resources), kinds);
  // The module follows the component's header, and the id and length of its only section.
  const module = repaired.subarray(repaired.indexOf("\0asm\x01", 8, "latin1"));
  const calls = [];
  const host = { called: () => calls.push("called") };
  for (const resource of resources) host[`[resource-drop]${resource}`] = (handle) => calls.push(`${resource} ${handle}`);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module), { host });
  assert.equal(exports[`opilio:plugin/${name}`](...parameters), RESULT);
  exports[`cabi_post_opilio:plugin/${name}`](RESULT);
  return calls;
}

test("borrowed resources are dropped after the call and before it returns, and the clean-up function does nothing", () => {
  const at = "@0.3.0#";
  assert.deepEqual(recordedCalls(`digest-stripper${at}strip`, [7], ["document"]), ["called", "document 7"]);
  assert.deepEqual(recordedCalls(`change-evaluator${at}compare`, [7, 8, 0, 0, 0], ["visit", "document"]), ["called", "document 7", "visit 8"]);
  assert.deepEqual(recordedCalls(`wait-evaluator${at}evaluate`, [8], ["visit"]), ["called", "visit 8"]);
  assert.deepEqual(recordedCalls(`page-behavior${at}step`, [7, 8, 0, 0], ["visit", "page"]), ["called", "page 7", "visit 8"]);
});

test("optional resources are dropped only if they are present", () => {
  const rank = (candidates, presence, document) =>
    recordedCalls("precedence@0.3.0#rank-candidates", [candidates, presence, document], ["candidates", "document"], []);
  assert.deepEqual(rank(5, 1, 6), ["called", "candidates 5", "document 6"]);
  assert.deepEqual(rank(5, 0, 6), ["called", "candidates 5"]);
});

test("a missing function of the plugin's kinds is an error", () => {
  const made = component("precedence@0.3.0#rank-candidates", 3, ["candidates", "document"]);
  assert.throws(() => dropBorrows(made, ["precedence"]), /functions not found in the component of componentize-qjs: precedence#rank-queue$/);
  assert.throws(() => dropBorrows(made, ["filter"]), /not found in the component of componentize-qjs: filter#judge-candidates, filter#judge-document$/);
  assert.doesNotThrow(() => dropBorrows(made, ["extractor"]));
});

test("BORROWS has all borrowed parameters of the contract's functions", () => {
  const wit = readFileSync(join(SDK, "wit/exports.wit"), "utf8");
  const found = {};
  for (const [, kind, body] of wit.matchAll(/^interface ([a-z-]+) \{$(.*?)^\}$/gms)) {
    for (const [, name, parameters] of body.matchAll(/^ {4}([a-z-]+): func\((.*)\)(?: ->.*)?;$/gm)) {
      // In the canonical ABI a stage has three parameters: its number, and pointer and length of the text of `other`.
      let at = 0;
      const borrows = [];
      for (const [, optional, resource, type] of parameters.matchAll(/: (?:(option<)?borrow<([a-z]+)>>?|(.+?))(?:, (?=[a-z]+:)|$)/g)) {
        if (optional) borrows.push({ at: at + 1, resource, presence: at });
        else if (resource) borrows.push({ at, resource });
        at += type === "stage" ? 3 : optional ? 2 : 1;
      }
      if (borrows.length > 0) found[`${kind}#${name}`] = borrows;
    }
  }
  assert.deepEqual(found, BORROWS);
});

test("other versions of componentize-qjs are refused", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opilio-borrows-"));
  try {
    cpSync(join(SDK, "test/plugins/headline"), folder, { recursive: true, dereference: true });
    const home = join(folder, "node_modules/componentize-qjs");
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, "package.json"), JSON.stringify({ name: "componentize-qjs", version: "9.0.0", main: "index.js" }));
    await assert.rejects(build(folder), (problem) => {
      assert.ok(problem instanceof MissingTool, problem.stack);
      assert.match(problem.message, new RegExp(`componentize-qjs ${REPAIRED_VERSION} is not installed: npm install .* \\(found 9\\.0\\.0\\)`));
      return true;
    });
    assert.deepEqual(readdirSync(folder).filter((file) => file.endsWith(".wasm")), []);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
