// Makes components of componentize-qjs drop borrowed resources before a call ends.
//
// Calls lend documents, visits, candidates, queues and pages to the plugin. A component must drop them before the call
// returns. componentize-qjs up to 0.4.5 drops them later, in the function that cleans up after the call, and the host
// refuses every answer. This module therefore changes the core module of a component:
// - each export with borrowed parameters becomes a function that calls the old one and then drops the resources;
// - the function that cleans up becomes empty. The memory that it would free is discarded with the instance.
// A later version may drop them in time, and a second drop is an error. Check this whenever you raise the version. If an
// expected function is missing, the build fails.

/** Version of componentize-qjs whose components this module can repair. */
export const REPAIRED_VERSION = "0.4.5";

/** Borrowed parameters of each core function. `presence` is the parameter that tells whether an optional resource is present. */
export const BORROWS = {
  "filter#judge-candidates": [{ at: 3, resource: "candidates" }],
  "filter#judge-document": [{ at: 3, resource: "document" }, { at: 4, resource: "visit" }],
  "digest-stripper#strip": [{ at: 0, resource: "document" }],
  "change-evaluator#compare": [{ at: 0, resource: "document" }, { at: 1, resource: "visit" }],
  "wait-evaluator#evaluate": [{ at: 0, resource: "visit" }],
  "precedence#rank-candidates": [{ at: 0, resource: "candidates" }, { at: 2, resource: "document", presence: 1 }],
  "precedence#rank-queue": [{ at: 0, resource: "queue" }],
  "page-behavior#step": [{ at: 0, resource: "page" }, { at: 1, resource: "visit" }],
};

/** Sections of a component: core module, and inner component. */
const CORE_MODULE = 1;
const COMPONENT = 4;
/** Sections of a core module. */
const [TYPES, IMPORTS, FUNCTIONS, EXPORTS, CODE] = [1, 2, 3, 7, 10];

/** Returns the repaired component of a plugin of these kinds. */
export function dropBorrows(component, kinds) {
  const repaired = new Set();
  const made = repairComponent(Buffer.from(component), repaired);
  const borrowing = Object.keys(BORROWS).filter((name) => kinds.includes(name.split("#")[0]));
  const missing = borrowing.filter((name) => !repaired.has(name));
  if (missing.length > 0) throw new Error(`functions not found in the component of componentize-qjs: ${missing.join(", ")}`);
  return made;
}

/** Returns the component with repaired modules. Adds the names of repaired functions to `repaired`. */
function repairComponent(component, repaired) {
  return mapSections(component, (id, content) => {
    if (id === COMPONENT) return repairComponent(content, repaired);
    return id === CORE_MODULE ? repairModule(content, repaired) : content;
  });
}

/** Returns a module or component with each section changed by `change`. */
function mapSections(binary, change) {
  const parts = [binary.subarray(0, 8)];
  for (const [id, content] of sections(binary)) {
    const changed = change(id, content);
    parts.push(Buffer.from([id, ...leb(changed.length)]), changed);
  }
  return Buffer.concat(parts);
}

function repairModule(module, repaired) {
  const known = Object.fromEntries(sections(module));
  const exported = EXPORTS in known ? exports(known[EXPORTS]) : [];
  const borrowing = exported.flatMap((one) => {
    const called = /^opilio:plugin\/(.+?)@[^#]*(#.+)$/.exec(one.name)?.slice(1).join("");
    if (!(called in BORROWS)) return [];
    repaired.add(called);
    return [{ ...one, borrows: BORROWS[called] }];
  });
  if (borrowing.length === 0) return module;

  const types = functionTypes(known[TYPES]);
  const imported = imports(known[IMPORTS]);
  const defined = list(known[FUNCTIONS], (bytes) => bytes.number());
  const typeOf = (index) => (index < imported.length ? imported[index].type : defined[index - imported.length]);
  const dropOf = (resource) => imported.findIndex(({ field }) => field === `[resource-drop]${resource}`);

  const made = [];
  const replaced = new Map();
  const replace = (name, index, body) => {
    replaced.set(name, imported.length + defined.length + made.length);
    made.push({ type: typeOf(index), body });
  };
  for (const { name, index, borrows } of borrowing) {
    const { params, results } = types[typeOf(index)];
    const drops = borrows.map((one) => ({ ...one, drop: dropOf(one.resource) }));
    if (drops.some(({ drop }) => drop < 0)) {
      throw new Error(`${name} borrows a resource, but its module does not import the function that drops it`);
    }
    replace(name, index, callAndDrop(index, params, results, drops));
    const after = exported.find((one) => one.name === `cabi_post_${name}`);
    if (after) replace(after.name, after.index, [0, END]);
  }
  const appended = (section, items) => {
    const [count, at] = number(section, 0);
    return Buffer.concat([Buffer.from(leb(count + items.length)), section.subarray(at), ...items.map((item) => Buffer.from(item))]);
  };
  return mapSections(module, (id, content) => {
    if (id === FUNCTIONS) return appended(content, made.map(({ type }) => leb(type)));
    if (id === CODE) return appended(content, made.map(({ body }) => [...leb(body.length), ...body]));
    if (id !== EXPORTS) return content;
    const items = exported.map(({ name, kind, index }) => {
      const text = Buffer.from(name);
      return Buffer.from([...leb(text.length), ...text, kind, ...leb(replaced.get(name) ?? index)]);
    });
    return Buffer.concat([Buffer.from(leb(items.length)), ...items]);
  });
}

const [END, CALL, LOCAL_GET, LOCAL_SET, IF, NO_RESULT] = [0x0b, 0x10, 0x20, 0x21, 0x04, 0x40];

/** Returns the body of a function that calls another of its type, drops resources, and returns the other's results. */
function callAndDrop(index, params, results, drops) {
  const get = (local) => [LOCAL_GET, ...leb(local)];
  const kept = results.map((_, at) => params.length + at);
  return [
    ...leb(results.length), ...results.flatMap((type) => [1, type]),
    ...params.flatMap((_, at) => get(at)),
    CALL, ...leb(index),
    ...kept.toReversed().flatMap((local) => [LOCAL_SET, ...leb(local)]),
    ...drops.flatMap(({ at, presence, drop }) => {
      const dropCall = [...get(at), CALL, ...leb(drop)];
      return presence === undefined ? dropCall : [...get(presence), IF, NO_RESULT, ...dropCall, END];
    }),
    ...kept.flatMap(get),
    END,
  ];
}

/** Returns `[id, content]` of each section. */
function sections(binary) {
  const found = [];
  for (let at = 8; at < binary.length; ) {
    const [length, start] = number(binary, at + 1);
    found.push([binary[at], binary.subarray(start, start + length)]);
    at = start + length;
  }
  return found;
}

/** Reads the content of a section. */
class Bytes {
  constructor(content) {
    this.content = content;
    this.at = 0;
  }
  byte() {
    return this.content[this.at++];
  }
  number() {
    let value;
    [value, this.at] = number(this.content, this.at);
    return value;
  }
  text() {
    const length = this.number();
    this.at += length;
    return this.content.toString("utf8", this.at - length, this.at);
  }
}

function list(section, item) {
  const bytes = new Bytes(section);
  return Array.from({ length: bytes.number() }, () => item(bytes));
}

const exports = (section) =>
  list(section, (bytes) => ({ name: bytes.text(), kind: bytes.byte(), index: bytes.number() }));

const functionTypes = (section) =>
  list(section, (bytes) => {
    if (bytes.byte() !== 0x60) throw new Error("unsupported type in a core module: only function types are expected");
    const values = () => Array.from({ length: bytes.number() }, () => bytes.byte());
    return { params: values(), results: values() };
  });

/** Returns the imported functions of a module. Their indexes come before those of its own functions. */
function imports(section) {
  const limits = (bytes) => {
    const flags = bytes.number();
    bytes.number();
    if (flags & 1) bytes.number();
  };
  const skip = {
    1: (bytes) => (bytes.byte(), limits(bytes)), // a table
    2: limits, // a memory
    3: (bytes) => (bytes.byte(), bytes.byte()), // a global
  };
  return list(section, (bytes) => {
    bytes.text();
    const [field, kind] = [bytes.text(), bytes.byte()];
    if (kind === 0) return { field, type: bytes.number() };
    if (!skip[kind]) throw new Error(`unsupported import of kind ${kind} in a core module`);
    skip[kind](bytes);
    return undefined;
  }).filter(Boolean);
}

/** Reads an unsigned LEB128 number. Returns it with its end. */
function number(bytes, at) {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return [value, at];
  }
}

function leb(value) {
  const bytes = [];
  for (; value >= 0x80; value = Math.floor(value / 128)) bytes.push((value % 128) | 0x80);
  return [...bytes, value];
}
