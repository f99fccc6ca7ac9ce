// Style sheets: the syntax tree of css-tree is searched for URLs. Text that css-tree keeps as raw text is searched as tokens.

import * as css from "css-tree";
import { fetchable, judgeAll, line } from "./walk.mjs";

function walk(tree, add) {
  css.walk(tree, {
    enter(node) {
      if (node.type === "Atrule" && /^(namespace|(-moz-)?document)$/i.test(node.name)) {
        // URLs in these rules are names. The block of `@document` is a style sheet.
        if (node.block) walk(node.block, add);
        return this.skip;
      }
      if (node.type === "Atrule" && node.name.toLowerCase() === "import" && node.prelude) {
        const first = node.prelude.children?.first;
        if (first?.type === "String" || first?.type === "Url") add("css/@import", first.value);
        return this.skip;
      }
      if (node.type === "Url") add("css/url", node.value);
      if (node.type === "Function" && /^(-webkit-)?image-set$/i.test(node.name)) {
        for (const child of node.children) if (child.type === "String") add("css/image-set", child.value);
      }
      if (node.type === "Raw") raw(node.value, add);
    },
  });
}

/// Raw text, which css-tree cannot parse as a value: Internet Explorer's filters, hacks, errors.
function raw(text, add) {
  const filter = /AlphaImageLoader\s*\([^)]*?\bsrc\s*=\s*(["'])(.*?)\1/gi;
  for (const match of text.matchAll(filter)) add("css/filter", match[2]);
  css.tokenize(text, (type, start, end) => {
    if (type === css.tokenTypes.Url) add("css/url", css.url.decode(text.slice(start, end)));
    if (type === css.tokenTypes.Function && /^url\($/i.test(text.slice(start, end))) {
      const quoted = /^\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/.exec(text.slice(end));
      if (quoted) add("css/url", css.string.decode(quoted[1]));
    }
  });
}

judgeAll((text) => {
  const expected = [];
  const add = (context, value) => {
    const reference = fetchable(value);
    if (reference) expected.push(line("link", "E", context, reference));
  };
  walk(css.parse(text, { parseCustomProperty: true, parseRulePrelude: false, positions: false, onParseError() {} }), add);
  return { expected };
});
