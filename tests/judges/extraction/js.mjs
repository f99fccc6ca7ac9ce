// Scripts, parsed by acorn. A parser finds the strings of a script, but not which of them are references: that needs a run of the
// script. So there are two lists:
//
// expected (for recall): strings that are certainly references: absolute URLs, paths of `import`, source maps, and paths of files
// of the same package. The operands of a `+` count only if all of them are constant.
// allowed (for precision): any string, and the text in quotes or behind `=` in a string. Any other reported link was taken from a
// comment, a regular expression or code.

import { readdirSync } from "node:fs";
import { parse } from "acorn";
import { judgeAll, line } from "./walk.mjs";

/// Strings that begin with `http` but are identifiers, such as XML namespaces.
const NAMESPACE = /^https?:\/\/(www\.)?(w3\.org\/(\d{4}|xml|ns)\b|schema\.org|purl\.org|schemas\.|ns\.adobe\.com|ogp\.me|xmlns\.com|json-schema\.org)/i;

const filesOf = new Map();

/// All endings of the paths of a package's files: `c.png`, `b/c.png`, `a/b/c.png`.
function names(root) {
  const found = new Set();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const parts = `${entry.parentPath ?? entry.path}/${entry.name}`.slice(root.length + 1).split("/");
    for (let at = 0; at < parts.length; at++) found.add(parts.slice(at).join("/"));
  }
  return found;
}

class Reader {
  constructor(files) {
    this.files = files;
    this.reset();
  }

  reset() {
    this.expected = new Set();
    this.allowed = new Set();
  }

  comment(text) {
    const map = /^\s*[#@]\s*sourceMappingURL=(\S+)\s*$/.exec(text);
    if (map && !/^data:/i.test(map[1])) this.expect(map[1]);
  }

  node(node) {
    if (!node || typeof node.type !== "string") return;
    if (/^(Import|Export).*Declaration$|^ImportExpression$/.test(node.type) && node.source?.type === "Literal") {
      if (/^(\.{0,2}\/.|https?:\/\/)/.test(node.source.value)) this.expect(node.source.value);
      this.allow(node.source.value);
      for (const [key, value] of Object.entries(node)) if (key !== "source") this.inner(value);
      return;
    }
    if (node.type === "CallExpression" && node.callee.name === "require") {
      // Arguments of `require` are names of modules.
      for (const argument of node.arguments) {
        const value = constant(argument);
        if (value !== null) this.allow(value);
        else this.node(argument);
      }
      return;
    }
    const value = constant(node);
    if (value !== null) {
      this.allow(value);
      this.pieces(node);
      this.string(value);
      return;
    }
    if (node.type === "BinaryExpression" && node.operator === "+") {
      // One operand is unknown, so the others are parts of a string: allowed, but not expected.
      this.halves(node);
      return;
    }
    for (const [key, child] of Object.entries(node)) {
      const isKey = key === "key" && node.type === "Property" && !node.computed;
      if (isKey && child.type === "Literal") this.allow(String(child.value));
      else this.inner(child);
    }
  }

  inner(value) {
    if (Array.isArray(value)) for (const each of value) this.node(each);
    else if (value && typeof value === "object") this.node(value);
  }

  halves(node) {
    const value = constant(node);
    if (value !== null) {
      this.allow(value);
      this.pieces(node);
    } else if (node.type === "BinaryExpression" && node.operator === "+") {
      // `a + "b" + "c"` is parsed as `(a + "b") + "c"`. Adjacent constant operands are joined to one string.
      const run = [];
      for (const operand of operands(node)) {
        const part = constant(operand);
        if (part !== null) {
          run.push(part);
          this.pieces(operand);
          continue;
        }
        if (run.length) this.allow(run.splice(0).join(""));
        this.node(operand);
      }
      if (run.length) this.allow(run.join(""));
    } else {
      this.node(node);
    }
  }

  pieces(node) {
    if (node.type === "BinaryExpression") for (const operand of operands(node)) this.allow(constant(operand) ?? "");
  }

  string(value) {
    const text = value.trim();
    if (text !== value || /[\s<>"'{}|\\^`]/.test(text) || NAMESPACE.test(text)) return;
    if (/^https?:\/\//i.test(text)) {
      let url;
      try {
        url = new URL(text);
      } catch {
        return;
      }
      if (/\.[a-z]{2,}$/i.test(url.hostname) && !/[*%$]/.test(url.host)) this.expect(text);
      return;
    }
    const path = text.replace(/[?#].*$/, "").replace(/^(\.{0,2}\/)+/, "");
    if (/\.[a-z0-9]{2,5}$/i.test(path) && this.files.has(path)) this.expect(text);
  }

  expect(value) {
    this.expected.add(line("link", "", "", value));
  }

  allow(value) {
    const add = (text) => {
      // Extractors report no text without a dot or slash, and such texts would be most of the answer.
      if (!/[./]/.test(text)) return;
      this.allowed.add(line("link", "", "", text.trim()));
      // A host with a path is also allowed with a scheme.
      if (/^[\w.-]+\.[a-z]+\//i.test(text)) this.allowed.add(line("link", "", "", `http://${text}`));
    };
    add(value);
    if (/["'=]/.test(value)) {
      // Each level of nested quotes is escaped once more.
      for (const text of [value, value.replace(/\\+(["'/])/g, "$1")]) {
        for (const quoted of text.matchAll(/(?=(["'])(.*?)\1)/gs)) {
          add(quoted[2]);
          add(quoted[2].replaceAll("&amp;", "&"));
        }
        for (const bare of text.matchAll(/=\s*([^\s>"']+)/g)) add(bare[1].replaceAll("&amp;", "&"));
      }
    }
  }
}

function operands(node) {
  if (node.type !== "BinaryExpression" || node.operator !== "+") return [node];
  return [...operands(node.left), ...operands(node.right)];
}

/// The string value of an expression if it is constant; null otherwise.
function constant(node) {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  if (node.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked ?? null;
  if (node.type === "BinaryExpression" && node.operator === "+") {
    const parts = operands(node).map((operand) => (operand === node ? null : constant(operand)));
    return parts.every((part) => part !== null) ? parts.join("") : null;
  }
  return null;
}

judgeAll((text, _file, root) => {
  if (!filesOf.has(root)) filesOf.set(root, names(root));
  const reader = new Reader(filesOf.get(root));
  const options = {
    ecmaVersion: "latest", allowHashBang: true, allowReturnOutsideFunction: true,
    onComment: (_block, comment) => reader.comment(comment),
  };
  let tree;
  try {
    tree = parse(text, { ...options, sourceType: "script" });
  } catch {
    reader.reset();
    tree = parse(text, { ...options, sourceType: "module" });
  }
  reader.node(tree);
  return { expected: [...reader.expected], allowed: [...reader.allowed] };
});
