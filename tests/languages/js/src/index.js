// Takes the first line of a document for a link, and hands the rest on as a fragment.

import { plugin } from "@opilio/plugin";

export default plugin({
  name: "relay-js",
  summary: "Reads a line and hands on the rest.",
  handles: { mediaTypes: ["application/x-relay-js"] },
  settings: {},

  extract(document) {
    const [uri, ...rest] = document.text().split("\n");
    const content = { text: rest.join("\n") };
    return {
      links: [{ uri, context: "relay/js" }],
      fragments: rest.length > 0 ? [{ mediaType: "application/x-relay-ts", content, context: "rest" }] : [],
    };
  },
});
