// Code that the compiler must accept, and code that it must refuse. It is checked and not run.

import {
  choice, click, decode, encode, flag, integer, list, map, plugin, reject, retry, scroll, text, type Hop,
} from "@opilio/plugin";
import { candidates, configured, document, host, page as pageInBrowser, visit } from "@opilio/plugin/testing";

const every = plugin({
  name: "every",
  summary: "Every kind.",
  settings: { words: list(text()), most: integer(3), how: choice(["fast", "well"]), by: map(flag()) },
  configure({ words, most, how, by }) {
    const typed: [string[], number, "fast" | "well", Record<string, boolean>] = [words, most, how, by];
    return { pattern: new RegExp(typed[0].join("|")), most };
  },
  *extract(page, { pattern }) {
    const length: number = page.length;
    if (pattern.test(page.text())) yield { uri: String(length), hop: "embed" };
    yield { uri: "a", details: { attributes: [{ name: "rel", value: "next" }] } };
  },
  judgeDocument(page, { now, candidate, history }, stage) {
    if (stage === "post-fetch" && page.status === 503) return retry(1000);
    if (history[0]?.state === "unchanged" && candidate.via === undefined) return reject(String(now));
    return undefined;
  },
  strip: (page) => [{ offset: 0, length: page.length }],
  compare: (page, _visit, last) => (last ? { difference: "unchanged", fingerprint: last } : undefined),
  evaluate: ({ lastWait }) => (lastWait ?? 0) * 2,
  rankCandidate: (candidate, page, { most }) => (candidate.isInTable("t") ? most : page?.length),
  rankQueue: (queue) => queue.best,
  observe: (memory, events) => ({ memory, lines: events.map(({ uri }) => ({ file: "uris.txt", text: uri })) }),
  report: (memory, now) => [{ file: "now.txt", content: `${memory.length} ${now}` }],
  step(page, { candidate }, memory, { most }) {
    const more = page.count("button.more") ?? 0;
    const clicked = page.results.reduce((sum, result) => (typeof result === "object" && "clicked" in result ? sum + result.clicked : sum), 0);
    if (page.step > most || page.stepsLeft === 0 || candidate.seed) return [scroll("top"), "screenshot"];
    if (clicked + more > 0 && decode(memory) !== "done") {
      return { actions: [click("button.more", { atMost: more, onlyNew: true }), { scroll: { by: -3 } }], count: ["button.more"], memory: encode("done") };
    }
    return undefined;
  },
});

const { most } = configured(every, { most: 4 });
every.rankCandidate?.([...candidates([{ uri: "a" }])][0]!, document({ text: "a" }), { pattern: /a/, most });
every.evaluate?.(visit({ lastWait: 3 }), { pattern: /a/, most });
every.step?.(pageInBrowser({ counts: { a: 1 }, results: ["done"] }), visit(), new Uint8Array(), { pattern: /a/, most });
const seen: Record<string, number> = host().counted;
const hop: Hop = "of a later contract";
export { hop, seen };

// @ts-expect-error there is no such function
plugin({ name: "x", summary: "X.", extrct: () => [] });
// @ts-expect-error a link has a uri
plugin({ name: "x", summary: "X.", extract: () => [{ url: "a" }] });
// @ts-expect-error facts are properties, not methods
plugin({ name: "x", summary: "X.", extract: (page) => [{ uri: page.uri() }] });
// @ts-expect-error a default must have the setting's type
integer("3");
// @ts-expect-error there is no such difference
plugin({ name: "x", summary: "X.", compare: () => ({ difference: "new" }) });
// @ts-expect-error there is no such action
plugin({ name: "x", summary: "X.", step: () => [{ clik: { selector: "a" } }] });
// @ts-expect-error there is no such scroll target
scroll("middle");
// @ts-expect-error not one of the texts
choice(["fast", "well"], "badly");
