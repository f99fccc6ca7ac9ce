// Finds URIs in HTML without parsing it. This extractor exists in every language, for comparison.

import { list, plugin, SettingsFault, text, type Link } from "@opilio/plugin";

const SPACE = " \\t\\n\\f\\r";
const ADDRESS = `(?<address>https?://[^${SPACE}"'<>]*)`;
const VALUE = `(?:"(?<double>[^"]*)"|'(?<single>[^']*)'|(?!["'])(?<bare>[^${SPACE}>]*)|["'])`;
const AROUND = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");
const PUNCTUATION = /[.,;:!?)]+$/;

export default plugin({
  name: "link-scan",
  summary: "Finds URIs in HTML without parsing it.",
  handles: { mediaTypes: ["text/html"] },
  settings: {
    attributes: list(text(), ["href", "src"], "Attributes whose values are URIs.", { overridable: true }),
  },

  /** Returns an expression that matches an attribute with its value, or a URI in the text. */
  configure({ attributes }): RegExp {
    const faults = attributes.flatMap((name, index) =>
      /^[a-z0-9-]+$/.test(name) ? [] : [new SettingsFault(`/attributes/${index}`, "not a name of an attribute")],
    );
    if (faults.length > 0) throw SettingsFault.all(faults);
    // Only the names are case-insensitive. A flag would apply to the whole expression.
    const names = attributes.map(eitherCase).join("|") || "(?!)";
    return new RegExp(`(?<=[${SPACE}])(?<name>${names})=${VALUE}|${ADDRESS}`, "g");
  },

  *extract(document, pattern): Iterable<Link> {
    for (const { groups = {} } of document.text().matchAll(pattern)) {
      const { name, double, single, bare, address } = groups;
      if (address !== undefined) {
        const uri = address.replace(PUNCTUATION, "");
        if (!uri.endsWith("//")) yield { uri, hop: "speculative", context: "text" };
      } else if (name !== undefined) {
        const uri = (double ?? single ?? bare ?? "").replace(AROUND, "").replaceAll("&amp;", "&");
        const attribute = name.toLowerCase();
        if (uri !== "") yield { uri, hop: attribute === "href" ? "link" : "embed", context: `@${attribute}` };
      }
    }
  },
});

function eitherCase(name: string): string {
  return name.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`);
}
