// The plugin that the Rust SDK tests its kinds with, and its cases: a document is the same while its first line is; what
// its URI's table says comes first; what has been seen is counted.

import { decode, encode, plugin, table } from "@opilio/plugin";

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
});
