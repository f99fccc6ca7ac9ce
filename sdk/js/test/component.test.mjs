// Tests of components in the sandbox. The program `opilio` runs cases on them and shows their errors. OPILIO is the path of
// the program. The default is the debug build of the checkout.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { build } from "../build/build.mjs";
import { missingToolsMessage, MissingTool, ProjectFault, requireTools, SDK, tool } from "../build/project.mjs";
import { test as testNatively } from "../build/test.mjs";

const OPILIO = process.env.OPILIO ?? join(SDK, "../../target/debug/opilio");
const PLUGINS = join(dirname(fileURLToPath(import.meta.url)), "plugins");
const scratch = mkdtempSync(join(tmpdir(), "opilio-sdk-js-"));
after(() => rmSync(scratch, { recursive: true }));

const page = join(scratch, "page.html");
writeFileSync(page, "<a href=b>");

/** Makes a copy of one of the plugins for the other engine. */
function onStarlingMonkey(name) {
  const folder = join(scratch, `starling-${name}`);
  cpSync(join(PLUGINS, name), folder, { recursive: true, dereference: true });
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ name, type: "module", main: "src/index.js", opilio: { engine: "starlingmonkey" } }),
  );
  return folder;
}

async function built(name) {
  const file = join(scratch, `${name}.wasm`);
  await build(join(PLUGINS, name), file);
  return file;
}

function run(file, settings) {
  const { stdout, stderr } = spawnSync(OPILIO, ["plugin", "run", file, page, "--settings", JSON.stringify(settings)], {
    encoding: "utf8",
  });
  return { stdout, stderr };
}

test("the cases of the Rust SDK's kinds pass natively and in the sandbox", async () => {
  assert.equal(await testNatively(join(PLUGINS, "headline")), 10);
  const file = await built("headline");
  const cases = join(PLUGINS, "headline/cases");
  const output = execFileSync(OPILIO, ["plugin", "test", file, "--cases", cases], { encoding: "utf8" });
  assert.match(output, /10 cases passed/);
});

test("StarlingMonkey answers as QuickJS does", async (context) => {
  const folder = onStarlingMonkey("headline");
  const file = join(scratch, "starling.wasm");
  try {
    await build(folder, file);
  } catch (problem) {
    // The engine is optional, because few plugins use it and its packages are hundreds of megabytes.
    if (problem instanceof MissingTool) return context.skip(problem.message);
    throw problem;
  }
  const output = execFileSync(OPILIO, ["plugin", "test", file, "--cases", join(folder, "cases")], { encoding: "utf8" });
  assert.match(output, /10 cases passed/);
});

test("clock and randomness are constant in a component, and system access is refused", async () => {
  const file = await built("inert");
  const first = facts(file);
  assert.equal(first.outside, "none");
  assert.equal(first.date, "2000-01-01T00:00:00.000Z");
  assertIsolated(first);
  assert.deepEqual(facts(file), first);
});

test("StarlingMonkey has functions for system access, which are refused", async (context) => {
  const file = join(scratch, "starling-inert.wasm");
  try {
    await build(onStarlingMonkey("inert"), file);
  } catch (problem) {
    if (problem instanceof MissingTool) return context.skip(problem.message);
    throw problem;
  }
  // Its clock always shows the time of the build.
  const first = facts(file);
  assertIsolated(first);
  assert.deepEqual(facts(file), first);
  // A request to the network ends the call.
  assert.match(run(file, { fetch: true }).stdout, /ERROR trap/);
});

/** Returns the facts that the plugin `inert` found. */
function facts(file) {
  const { stdout, stderr } = spawnSync(OPILIO, ["plugin", "run", file, page, "--json"], { encoding: "utf8" });
  const { links } = JSON.parse(stdout).answers[0].found ?? assert.fail(stdout + stderr);
  return Object.fromEntries(links.map(({ uri, context }) => [context, decodeURIComponent(uri.split("/").at(-1))]));
}

function assertIsolated({ clock, environment, file }) {
  assert.deepEqual({ clock, environment, file }, { clock: "0", environment: "nothing", file: "nothing" });
}

test("plugin errors name the plugin, version, URI, file and line", async () => {
  const file = await built("faulty");
  const check = (how, message) => {
    const { stdout } = run(file, { how });
    assert.match(stdout, /200 http:\/\/example\.com\/page\.html/);
    assert.ok(stdout.includes(`faulty 1.2.3, extract: ${message}`), stdout);
    return stdout;
  };
  const thrown = check("throw", "RangeError: cannot read http://example.com/page.html");
  assert.match(thrown, /at deep \(src\/deep\.js:4\)\s+at extract \(src\/index\.js:15\)/);
  check("throw a text", "thrown: just a text");
  check("wrong type", "TypeError: links[0].uri must be a string, not number 3");
  check("misspelt", "TypeError: links[0] has an unknown field url; known fields: uri, hop, context, base, details");
  check("no list", "TypeError: the answer must be an object, not number 7");
  check("hop", "TypeError: links[0].hop must be one of link, embed");
  check("fragment", "TypeError: fragments[0].content.text-at.offset must be a whole number");
  assert.match(run(file, {}).stdout, /faulty 1\.2\.3, rankCandidates: TypeError: rank 0 must be a whole number from 1 to 255, not number 256/);
});

test("invalid settings are reported before the plugin runs", async () => {
  const file = await built("faulty");
  assert.match(run(file, { how: 3 }).stderr, /settings of faulty 1\.2\.3: \/how: 3 is not of type "string"/);
  assert.match(run(file, { why: 3 }).stderr, /faulty 1\.2\.3: .*why/);
  const { stderr } = run(file, { refuse: true });
  assert.match(stderr, /faulty 1\.2\.3, configure: TypeError: .*src\/index\.js:11/s);
});

test("errors in a project are reported", async () => {
  const project = (files) => {
    const folder = mkdtempSync(join(scratch, "project-"));
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    return build(folder);
  };
  const facts = (more) => JSON.stringify({ name: "x", version: "0.1.0", type: "module", main: "index.js", ...more });
  const refused = (files, message) => assert.rejects(project(files), (problem) => {
    assert.ok(problem instanceof ProjectFault, problem.stack);
    assert.match(problem.message, message);
    return true;
  });
  await refused({}, /is not a JavaScript plugin: it has no package\.json/);
  await refused({ "package.json": "{" }, /package\.json: /);
  await refused({ "package.json": facts() }, /main names .*index\.js, which does not exist/);
  await refused({ "package.json": facts({ opilio: { engine: "v8" } }), "index.js": "" }, /opilio\.engine is "v8"; it must be quickjs or starlingmonkey/);
  await refused({ "package.json": facts(), "index.js": "export default {};" }, /index\.js: a plugin needs a name/);
  const wrong = "import { plugin } from '@opilio/plugin'; export default plugin({ name: 'x', summary: 'X.', extrct() {} });";
  await refused({ "package.json": facts(), "index.js": wrong }, /unknown property extrct of a plugin/);
  const typed = `import { plugin } from "@opilio/plugin";
export default plugin({ name: "x", summary: "X.", extract: (document) => [{ uri: document.status }] });`;
  const config = '{ "compilerOptions": { "strict": true, "types": [], "module": "esnext", "moduleResolution": "bundler", "target": "es2023" } }';
  await refused(
    { "package.json": facts({ main: "index.ts" }), "index.ts": typed, "tsconfig.json": config },
    /index\.ts\(2,\d+\): error TS2322: .*Type 'number' is not assignable to type 'string'/s,
  );
});

test("the message about missing tools names all of them and the command that installs them", async () => {
  const folder = mkdtempSync(join(scratch, "project-"));
  await assert.rejects(tool("no-such-tool", { folder }), MissingTool);
  assert.throws(() => requireTools(["no-such-tool", "esbuild", "nor-this"], { folder }), (problem) => {
    assert.ok(problem instanceof MissingTool, problem.stack);
    assert.match(problem.message, /^no-such-tool .*, nor-this .* are not installed: /);
    return true;
  });
  assert.equal(
    missingToolsMessage(["esbuild", "typescript"], "DIR"),
    "esbuild 0.25.12, typescript 5.9.3 are not installed: npm install --prefix DIR --save-dev --save-exact esbuild@0.25.12 typescript@5.9.3",
  );
  assert.match(missingToolsMessage(["esbuild"], "/my plugins/a"), / --prefix '\/my plugins\/a' --save-dev /);
});
