// Takes the first line of a document for a link, and hands the rest on as a fragment; or goes wrong, as it is told.

import { plugin } from "@opilio/plugin";

export default plugin({
  name: "relay-js",
  summary: "Reads a line and hands on the rest.",
  handles: { mediaTypes: ["application/x-relay-js"] },
  settings: {},

  extract(document) {
    if (document.text() === "fail") throw new RangeError("relay-js was told to fail");
    if (document.text() === "wrong") return { links: "none" };
    const [uri, ...rest] = document.text().split("\n");
    const content = { text: rest.join("\n") };
    return {
      links: [{ uri, context: "relay/js" }],
      fragments: rest.length > 0 ? [{ mediaType: "application/x-relay-ts", content, context: "rest" }] : [],
    };
  },
});
