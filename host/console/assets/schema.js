// Finds the settings that are allowed at a place in a profile, from the JSON Schema of profiles.

/** The settings allowed at the cursor, and the part of a name that is typed already; null inside of values and comments. */
export function keysAt(schema, before) {
  const lines = before.split("\n");
  const line = lines.at(-1);
  const header = /^\s*(\[\[?)\s*([A-Za-z0-9_.-]*)$/.exec(line);
  if (header) {
    const typed = header[2];
    const keys = tables(schema).filter((key) => key.name.startsWith(typed) && (header[1] === "[[") === key.isList);
    return { typed, keys: keys.map((key) => ({ ...key, isTable: true })) };
  }
  const typed = /^\s*([A-Za-z0-9_.-]*)$/.exec(line);
  if (!typed) return null;
  const table = tableOf(lines.slice(0, -1));
  const node = find(schema, schema, table);
  if (!node) return null;
  const at = typed[1].split(".");
  const inner = find(schema, node, at.slice(0, -1));
  if (!inner) return null;
  const prefix = at.slice(0, -1).map((part) => `${part}.`).join("");
  const keys = Object.entries(properties(schema, inner))
    .map(([name, property]) => ({ name: prefix + name, description: text(schema, property) }))
    .filter((key) => key.name.startsWith(typed[1]));
  return { typed: typed[1], keys };
}

function tableOf(lines) {
  for (const line of [...lines].reverse()) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?/.exec(line);
    if (header) return header[1].split(".").map((part) => part.trim().replaceAll(/^"|"$/g, ""));
  }
  return [];
}

/** Tables of the profile on the first two levels. */
function tables(schema) {
  const found = [];
  const walk = (node, prefix, depth) => {
    for (const [name, property] of Object.entries(properties(schema, node))) {
      const inner = resolve(schema, property);
      const items = inner.items && resolve(schema, inner.items);
      const isList = Boolean(items && Object.keys(properties(schema, items)).length > 0);
      if (isList || Object.keys(properties(schema, inner)).length > 0) {
        found.push({ name: prefix + name, description: text(schema, property), isList });
        if (depth < 2 && !isList) walk(inner, `${prefix}${name}.`, depth + 1);
      }
    }
  };
  walk(schema, "", 1);
  return found;
}

function find(schema, node, path) {
  let at = resolve(schema, node);
  for (const part of path) {
    const next = properties(schema, at)[part] ?? (typeof at.additionalProperties === "object" ? at.additionalProperties : undefined);
    if (!next) return null;
    at = resolve(schema, next);
    if (at.items) at = resolve(schema, at.items);
  }
  return at;
}

/** The properties of a node, including those of all its alternatives. */
export function properties(schema, node) {
  const at = resolve(schema, node);
  const parts = [at, ...(at.allOf ?? []), ...(at.anyOf ?? []), ...(at.oneOf ?? [])].map((part) => resolve(schema, part));
  return Object.assign({}, ...parts.map((part) => part.properties ?? {}));
}

/** The node to which `$ref` of a node refers, or the node itself. */
export function resolve(schema, node) {
  let at = node ?? {};
  for (let depth = 0; at.$ref && depth < 8; depth += 1) {
    const path = at.$ref.replace(/^#\//, "").split("/");
    at = path.reduce((place, part) => place?.[part.replaceAll("~1", "/").replaceAll("~0", "~")], schema) ?? {};
  }
  return at;
}

function text(schema, property) {
  return property.description ?? resolve(schema, property).description ?? "";
}
