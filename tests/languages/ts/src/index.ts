// Takes the first line of a document for a link, and hands the rest on as a fragment; or goes wrong, as it is told.

import { plugin, type Extraction } from "@opilio/plugin";

export default plugin({
  name: "relay-ts",
  summary: "Reads a line and hands on the rest.",
  handles: { mediaTypes: ["application/x-relay-ts"] },
  settings: {},

  extract(document): Extraction {
    if (document.text() === "fail") throw new RangeError("relay-ts was told to fail");
    // What a type asserts, nobody checks before it runs.
    if (document.text() === "wrong") return { links: [{ uri: 7 as unknown as string }] };
    const [uri = "", ...rest] = document.text().split("\n");
    const content = { text: rest.join("\n") };
    return {
      links: [{ uri, context: "relay/ts" }],
      fragments: rest.length > 0 ? [{ mediaType: "application/x-relay-python", content, context: "rest" }] : [],
    };
  },
});
