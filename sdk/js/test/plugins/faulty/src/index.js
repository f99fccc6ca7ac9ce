// Fails in the way that its setting selects.

import { flag, plugin, text } from "@opilio/plugin";
import { deep } from "./deep.js";

export default plugin({
  name: "faulty",
  summary: "Fails on request, for tests.",
  settings: { how: text("", "The way to fail."), refuse: flag(false, "Throw an error in configure that is not a SettingsFault.") },
  configure(settings) {
    if (settings.refuse) settings.nothing.here;
    return settings;
  },
  extract(document, { how }) {
    if (how === "throw") deep(document.uri);
    if (how === "throw a text") throw "just a text";
    const answers = {
      "wrong type": [{ uri: 3 }],
      misspelt: [{ url: "a" }],
      "no list": 7,
      hop: [{ uri: "a", hop: 1 }],
      fragment: { fragments: [{ mediaType: "text/css", content: { "text-at": { offset: -1, length: 2 } } }] },
    };
    return answers[how];
  },
  rankCandidate: () => 256,
});
