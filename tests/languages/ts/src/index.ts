// Takes the first line of a document for a link, and hands the rest on as a fragment.

import { plugin, type Extraction } from "@opilio/plugin";

export default plugin({
  name: "relay-ts",
  summary: "Reads a line and hands on the rest.",
  handles: { mediaTypes: ["application/x-relay-ts"] },
  settings: {},

  extract(document): Extraction {
    const [uri = "", ...rest] = document.text().split("\n");
    const content = { text: rest.join("\n") };
    return {
      links: [{ uri, context: "relay/ts" }],
      fragments: rest.length > 0 ? [{ mediaType: "application/x-relay-python", content, context: "rest" }] : [],
    };
  },
});
