// The test plugin of the Rust SDK, with its cases. It compares the first lines of documents, takes ranks from a table, counts
// events, and plans every action on a page.

import {
  click, decode, encode, evaluate, pause, plugin, screenshot, scroll, table, waitForNetwork, waitForSelector,
} from "@opilio/plugin";

export default plugin({
  name: "headline",
  summary: "For tests.",
  keeps: [
    { name: "headline", keeper: "uri", version: 2 },
    { name: "last-headline", keeper: "site", version: 1 },
  ],

  compare(document, visit, last) {
    const [headline] = document.text().split("\n");
    document.setAttribute("headline", headline);
    visit.setSiteValue("last-headline", headline);
    const fingerprint = encode(headline);
    if (last === undefined) return { fingerprint };
    return decode(last) === headline
      ? { difference: "unchanged", fingerprint, reason: "the same headline" }
      : { difference: "changed", fingerprint, reason: "another headline" };
  },

  rankCandidate(candidate, document) {
    if (candidate.seed) return 1;
    if (candidate.isInTable("first")) return Number(table("first").find(candidate.surt).value);
    return document && 10 + document.length;
  },
  rankQueue: (queue) => queue.best && Math.max(queue.best, queue.base),

  observe: ([seen = 0], events) => ({
    memory: [seen + events.length],
    lines: events.map((event) => ({ file: "uris.txt", text: event.uri })),
  }),
  report: ([seen = 0], now) => [{ file: "seen.txt", content: `${seen} by ${now}` }],

  step(page, visit, [seen = 0]) {
    if (page.step === 0) {
      const actions = [
        scroll("top"), scroll(), scroll({ to: 7 }), scroll({ by: -7 }), scroll({ element: "#a" }), click("b"),
        click("c", { text: "more", atMost: 5, onlyNew: true }), waitForSelector(".d", 1000), waitForNetwork(2000), pause(3),
        evaluate("return 1"), screenshot(),
      ];
      return { actions, count: ["h1", "h2"], memory: [1] };
    }
    const texts = page.results.map((result) => result.value ?? result.exception).filter(Boolean);
    const clicked = page.results.reduce((sum, result) => sum + (result.clicked ?? 0), 0);
    const facts = [
      page.uri, page.title, page.elements, page.scrollTop, page.timeLeft, page.stepsLeft, page.count("h1"),
      page.count("h2") ?? "none", ...texts, visit.candidate.uri,
    ];
    return { actions: [evaluate(facts.join(" "))], memory: [seen + clicked], finished: true };
  },
});
