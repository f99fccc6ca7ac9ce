// Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.

import { plugin, type Extraction } from "@opilio/plugin";

export default plugin({
  name: "relay-ts",
  summary: "Reports the first line as a link and the rest as a fragment.",
  handles: { mediaTypes: ["application/x-relay-ts"] },
  settings: {},

  extract(document): Extraction {
    if (document.text() === "fail") throw new RangeError("relay-ts was told to fail");
    // The compiler does not check a type assertion.
    if (document.text() === "wrong") return { links: [{ uri: 7 as unknown as string }] };
    const [uri = "", ...rest] = document.text().split("\n");
    const content = { text: rest.join("\n") };
    return {
      links: [{ uri, context: "relay/ts" }],
      fragments: rest.length > 0 ? [{ mediaType: "application/x-relay-python", content, context: "rest" }] : [],
    };
  },
});
