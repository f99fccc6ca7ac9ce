// Native tests of the SDK: kinds, settings, answers, and messages about errors.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  bytesAt, choice, click, decode, encode, evaluate, flag, integer, list, map, pause, plugin, screenshot, scroll, SettingsFault, text,
  waitForNetwork, waitForSelector,
} from "../src/index.js";
import { component } from "../src/component.js";
import { documentHandle, doubleHost, pageHandle, queueHandle, visitHandle } from "../src/double.js";
import { describe } from "../src/plugin.js";
import { withDefaults } from "../src/settings.js";
import { mapStack } from "../src/places.js";
import { configured, document, host } from "../src/testing.js";

const extractor = (extract) => plugin({ name: "x", summary: "X.", extract });
const answer = (extract) => {
  const made = component(extractor(extract), doubleHost());
  made.setup.configure("x", "{}");
  return made.extractor.extract([documentHandle({ text: "a" })])[0];
};

test("the functions of a plugin determine its kinds", () => {
  const described = describe(plugin({ name: "x", summary: "X.", judgeDocument() {}, report() {} }));
  assert.deepEqual(described.kinds, ["filter", "observer"]);
});

test("invalid definitions are errors when the module is loaded", () => {
  assert.throws(() => plugin({ name: "x", summary: "X.", extrakt() {} }), /unknown property extrakt of a plugin; known properties: name,/);
  assert.throws(() => plugin({ name: "x", summary: "X." }), /x has no kind: it must define one of extract,/);
  assert.throws(() => plugin({ name: "x", extract() {} }), /needs a summary/);
});

test("settings make a strict schema, and missing settings have their defaults", () => {
  const settings = {
    word: text("x", "A word.", { overridable: true, pattern: "^[a-z]+$" }),
    most: integer(undefined, "How many.", { level: "warning", minimum: 1 }),
    by: map(list(flag()), {}, "", { expert: true }),
    how: choice(["fast", "well"], "well"),
  };
  const { settingsSchema } = describe(plugin({ name: "x", summary: "X.", settings, extract() {} }));
  assert.deepEqual(JSON.parse(settingsSchema), {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    required: ["most"],
    properties: {
      word: { type: "string", pattern: "^[a-z]+$", default: "x", description: "A word.", "x-opilio-overridable": true },
      most: { type: "integer", minimum: 1, description: "How many.", "x-opilio-level": "warning" },
      by: {
        type: "object", additionalProperties: { type: "array", items: { type: "boolean" } }, default: {}, "x-opilio-expert": true,
      },
      how: { type: "string", enum: ["fast", "well"], default: "well" },
    },
  });
  assert.deepEqual(withDefaults(settings, { most: 3 }), { word: "x", most: 3, by: {}, how: "well" });
  assert.throws(() => withDefaults(settings, {}), { faults: [{ pointer: "/most", problem: "is required" }] });
  assert.throws(() => withDefaults(settings, { mots: 3 }), { faults: [{ pointer: "/mots", problem: "unknown setting; known settings: word, most, by, how" }] });
});

test("settings faults are returned, and other exceptions are logged", () => {
  const refusing = (configure) => {
    const double = doubleHost();
    const made = component(plugin({ name: "x", version: "2.0.0", summary: "X.", configure, extract() {} }), double);
    return { double, configure: () => made.setup.configure("x", "{}") };
  };
  const faults = [new SettingsFault("/a", "is empty"), new SettingsFault("/b/0", "is too long")];
  const two = refusing(() => { throw SettingsFault.all(faults); });
  assert.throws(two.configure, (thrown) => {
    assert.deepEqual(thrown, [{ pointer: "/a", problem: "is empty" }, { pointer: "/b/0", problem: "is too long" }]);
    return true;
  });
  const failing = refusing((settings) => settings.nothing.here);
  assert.throws(failing.configure, TypeError);
  assert.match(failing.double.logged[0].message, /^x 2\.0\.0, configure: TypeError: /);
});

test("wrong types in answers are reported with their place", () => {
  const cases = [
    [() => [{ uri: 3 }], "links[0].uri must be a string, not number 3"],
    [() => [{ uri: "a" }, { url: "b" }], "links[1] has an unknown field url; known fields: uri, hop, context, base, details"],
    [() => [{}], "links[0].uri must be a string, not nothing"],
    [() => "a", "links must be a list, not string \"a\""],
    [() => 7, "the answer must be an object, not number 7"],
    [() => ({ links: "a" }), "links must be a list, not string \"a\""],
    [() => [{ uri: "a", hop: 1 }], "links[0].hop must be one of link, embed, speculative, redirect, prerequisite, inferred, manifest, submit, other, not number 1"],
    [() => ({ finished: 1 }), "finished must be true or false, not number 1"],
    [() => ({ fragments: [{ mediaType: "a", content: { "text-at": { offset: 0.5, length: 1 } } }] }),
      "fragments[0].content.text-at.offset must be a whole number up to 9007199254740991, not number 0.5"],
  ];
  for (const [extract, message] of cases) assert.throws(() => answer(extract), { name: "TypeError", message });
});

test("hops of later contracts pass through, and extractors may be generators", () => {
  const { links } = answer(function* () {
    yield { uri: "a", hop: "teleport" };
    yield { uri: "b", details: { attributes: [{ name: "rel", value: "nofollow" }] } };
  });
  assert.deepEqual(links.map(({ hop }) => hop), [{ tag: "other", val: "teleport" }, { tag: "link" }]);
  assert.deepEqual(links[1].details.attributes, [{ name: "rel", value: "nofollow" }]);
  assert.deepEqual(answer(() => undefined).links, []);
});

test("ranks go from 1 to 255", () => {
  const ranked = (rank) => {
    const made = component(plugin({ name: "x", summary: "X.", rankQueue: () => rank }), doubleHost());
    made.setup.configure("x", "{}");
    return made.precedence.rankQueue(queueHandle({}));
  };
  assert.deepEqual([1, 255, undefined].map(ranked), [1, 255, undefined]);
  for (const rank of [0, 256, 1.5]) {
    assert.throws(() => ranked(rank), { name: "TypeError", message: `rank must be a whole number from 1 to 255, not number ${rank}` });
  }
});

const planned = (step, page = {}, memory = []) => {
  const made = component(plugin({ name: "x", summary: "X.", step }), doubleHost());
  made.setup.configure("x", "{}");
  return made.pageBehavior.step(pageHandle(page), visitHandle({}), Uint8Array.from(memory));
};

test("actions of a page behaviour have the contract's form", () => {
  const actions = [
    scroll(), scroll({ by: -300 }), scroll({ element: "#end" }), click("a"),
    click("button", { text: "more", atMost: 5, onlyNew: true }), waitForSelector(".new", 100), waitForNetwork(), pause(7),
    evaluate("return 1"), screenshot(),
  ];
  const count = ["button"];
  const { actions: lowered, ...rest } = planned(() => ({ actions, count, memory: [1] }));
  assert.deepEqual(lowered, [
    { tag: "scroll", val: { tag: "bottom" } },
    { tag: "scroll", val: { tag: "by", val: -300 } },
    { tag: "scroll", val: { tag: "element", val: "#end" } },
    { tag: "click", val: { selector: "a", text: undefined, atMost: 1, onlyNew: false } },
    { tag: "click", val: { selector: "button", text: "more", atMost: 5, onlyNew: true } },
    { tag: "wait-for-selector", val: { selector: ".new", atMost: 100 } },
    { tag: "wait-for-network", val: 5000 },
    { tag: "wait", val: 7 },
    { tag: "evaluate", val: "return 1" },
    { tag: "screenshot" },
  ]);
  assert.deepEqual(rest, { count, memory: Uint8Array.of(1), finished: false });
});

test("a list of actions or a missing value is the last step", () => {
  const last = planned(function* () {
    yield click("a");
  });
  assert.deepEqual([last.actions.length, last.finished], [1, true]);
  assert.deepEqual(planned(() => undefined), { actions: [], count: [], memory: new Uint8Array(), finished: true });
});

test("a page behaviour reads the page and its own memory", () => {
  const read = (page, visit, memory) => ({ memory: encode(`${page.uri} ${page.count("a")} ${page.count("b")} ${page.step} ${memory[0]}`) });
  const page = { uri: "http://a/", counts: { a: 3 }, step: 2 };
  assert.equal(decode(planned(read, page, [9]).memory), "http://a/ 3 undefined 2 9");
});

test("an unknown action is an error with its place", () => {
  for (const [action, message] of [
    [{ clik: {} }, "actions[0] must be one of scroll, click, wait-for-selector, wait-for-network, wait, evaluate, screenshot, not object {\"clik\":{}}"],
    [{ scroll: "botom" }, "actions[0].scroll must be one of top, bottom, to, by, element, not string \"botom\""],
    [{ scroll: { by: 0.5 } }, "actions[0].scroll.by must be a whole number from -2147483648 to 2147483647, not number 0.5"],
    [click(3), "actions[0].click.selector must be a string, not number 3"],
  ]) {
    assert.throws(() => planned(() => [action]), { name: "TypeError", message });
  }
});

test("offsets count the bytes of UTF-8", () => {
  const text = "aäß€😀z";
  const at = bytesAt(text);
  const offsets = [...text].map((character) => at(text.indexOf(character)));
  assert.deepEqual(offsets, [0, 1, 3, 5, 8, 12]);
  assert.equal(at(0), 0);
  assert.deepEqual(encode(text), new TextEncoder().encode(text));
  assert.deepEqual(encode("\ud800"), new TextEncoder().encode("\ud800"));
  assert.equal(decode(encode(text)), text);
  assert.equal(document({ bytes: [0x61, 0xff] }).latin1(), "a\xff");
});

test("large documents are read in parts", () => {
  const bytes = new Uint8Array(9 * 1024 * 1024).fill(7);
  bytes[bytes.length - 1] = 8;
  assert.deepEqual(document({ bytes }).content(), bytes);
});

test("handles record the values that a plugin sets", () => {
  const { logged, counted } = host();
  const page = document({ text: "a", kept: { site: { seen: { version: 1, value: "2" } } } });
  assert.deepEqual(page.siteValue("seen"), { version: 1, value: "2" });
  page.setAttribute("last", 3);
  page.setNote("why", "because");
  page.annotate("odd");
  assert.deepEqual(page.handle.kept.uri, { last: { version: 0, value: "3" } });
  assert.equal(page.note("why"), "because");
  assert.deepEqual(page.handle.annotations, ["odd"]);
  page.setAttribute("last", "");
  assert.equal(page.attribute("last"), undefined);
  assert.deepEqual([logged, counted], [[], {}]);
});

test("configured returns the result of configure", () => {
  const made = plugin({
    name: "x", summary: "X.", settings: { word: text("a") }, configure: ({ word }) => new RegExp(word), extract() {},
  });
  assert.deepEqual(configured(made, { word: "b" }), /b/);
});

test("stacks have only lines of the author's files", () => {
  const places = { files: [null, "src/a.js"], runs: [[1, 0, 1], [10, 1, 100], [20, 0, 50]] };
  const stack = "    at f (bundle.js:12:3)\n    at sdk (bundle.js:25:1)\n    at map (native)\n    at g (bundle.js:10:1)";
  assert.equal(mapStack(stack, places), "    at f (src/a.js:102)\n    at g (src/a.js:100)");
  assert.equal(mapStack("f@bundle.js:11:3", places), "f@src/a.js:101");
});
