// Finds addresses in HTML without parsing it: the extractor that exists in every language, for comparison.

import { list, plugin, SettingsFault, text } from "@opilio/plugin";

const PUNCTUATION = /[.,;:!?)]+$/;

export default plugin({
  name: "link-scan",
  summary: "Finds addresses in HTML without parsing it.",
  handles: { mediaTypes: ["text/html"] },
  settings: {
    attributes: list(text(), ["href", "src"], "Attributes whose values are addresses.", { overridable: true }),
  },

  configure({ attributes }) {
    const faults = attributes.flatMap((name, index) =>
      /^[a-z0-9-]+$/.test(name) ? [] : [new SettingsFault(`/attributes/${index}`, "not a name of an attribute")],
    );
    if (faults.length > 0) throw SettingsFault.all(faults);
    // An attribute with its value, or an address; whichever stands first.
    const names = attributes.join("|");
    const attribute = `(?<=[ \\t\\n\\f\\r])(${names || "(?!)"})=(?:"([^"]*)"|'([^']*)'|(?!["'])([^ \\t\\n\\f\\r>]*)|["'])`;
    const address = "(https?://[^ \\t\\n\\f\\r\"'<>]*)";
    const spelt = names.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
    return { attributes, pattern: new RegExp(`${attribute.replace(names, spelt)}|${address}`, "g") };
  },

  *extract(document, { attributes, pattern }) {
    for (const [, name, double, single, bare, address] of document.text().matchAll(pattern)) {
      if (address !== undefined) {
        const uri = address.replace(PUNCTUATION, "");
        if (!uri.endsWith("//")) yield { uri, hop: "speculative", context: "text" };
        continue;
      }
      const value = double ?? single ?? bare ?? "";
      const uri = value.replace(/^[ \t\n\f\r]+|[ \t\n\f\r]+$/g, "").replaceAll("&amp;", "&");
      if (uri === "") continue;
      const written = attributes.find((known) => known === name.toLowerCase());
      yield { uri, hop: written === "href" ? "link" : "embed", context: `@${written}` };
    }
  },
});
