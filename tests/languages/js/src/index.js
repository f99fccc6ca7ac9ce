// Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.

import { plugin } from "@opilio/plugin";

export default plugin({
  name: "relay-js",
  summary: "Reports the first line as a link and the rest as a fragment.",
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
