// Handles for native tests, which run without a host. They have the contract's methods and return the facts of a test or case, so
// tests use the same views and conversions as a component. Facts have the contract's names in camelCase.

const orUndefined = (value) => value ?? undefined;
const variantOf = (name, known) => (known.includes(name) ? { tag: name } : { tag: "other", val: name });

/** Returns methods that return the fact of the same name. */
const answers = (facts, names) => Object.fromEntries(names.map((name) => [name, () => orUndefined(facts[name])]));

function keptValues(kept = {}) {
  const values = { uri: { ...kept.uri }, site: { ...kept.site } };
  // The host would set the version of the description.
  const set = (of) => (name, value) => {
    if (value === "") delete of[name];
    else of[name] = { version: 0, value };
  };
  return {
    kept: values,
    attribute: (name) => orUndefined(values.uri[name]),
    setAttribute: set(values.uri),
    siteValue: (name) => orUndefined(values.site[name]),
    setSiteValue: set(values.site),
  };
}

const notesByName = (notes = []) => new Map(notes.map(({ name, value }) => [name, value]));

/** A handle of the resource `document`. Tests read the plugin's `annotations`, `notes` and `kept` values. */
export function documentHandle(given = {}) {
  const facts = {
    uri: "http://example.com/",
    status: 200,
    headers: [],
    mediaType: "application/octet-stream",
    ...given,
  };
  facts.base ??= facts.uri;
  const content = facts.bytes ? Uint8Array.from(facts.bytes) : new TextEncoder().encode(facts.text ?? "");
  const notes = notesByName(facts.notes);
  const annotations = [];
  return {
    ...answers(facts, ["uri", "base", "status", "headers", "mediaType", "charset", "fragment"]),
    header: (name) =>
      facts.headers.filter((header) => header.name.toLowerCase() === name.toLowerCase()).map(({ value }) => value),
    length: () => content.length,
    read: (offset, length) => content.slice(offset, offset + length),
    text: () => facts.text || new TextDecoder(facts.charset ?? "utf-8").decode(content),
    note: (name) => notes.get(name),
    setNote: (name, value) => notes.set(name, value),
    annotate: (annotation) => annotations.push(annotation),
    ...keptValues(facts.kept),
    annotations,
    notes,
  };
}

const candidate = (facts) => ({
  uri: "", surt: "", hopPath: "", context: "", seed: false, attributes: [], ...facts,
});

/** A handle of the resource `visit`. */
export function visitHandle(given = {}) {
  const facts = {
    now: 0, status: 0, mediaType: "", state: "new", overdue: 0, visits: 0, versions: 0, history: [], outlinks: 0,
    inlinks: 0, signals: [], neighbourhood: [], ...given,
  };
  const notes = notesByName(facts.notes);
  return {
    ...answers(facts, [
      "now", "status", "mediaType", "state", "size", "lastWait", "overdue", "visits", "versions", "history",
      "outlinks", "inlinks", "signals", "neighbourhood",
    ]),
    candidate: () => candidate(facts.candidate),
    validator: (name) => facts.validators?.find((header) => header.name.toLowerCase() === name.toLowerCase())?.value,
    measure: (name) => facts.measures?.[name],
    note: (name) => notes.get(name),
    ...keptValues(facts.kept),
  };
}

/** A handle of the resource `candidates`. */
export function candidatesHandle(list) {
  const all = list.map(candidate);
  const column = (name) => () => all.map((one) => `${one[name] ?? ""}\n`).join("");
  return {
    length: () => all.length,
    uris: column("uri"),
    surts: column("surt"),
    hopPaths: column("hopPath"),
    contexts: column("context"),
    vias: column("via"),
    viaSurts: column("viaSurt"),
    sources: column("source"),
    addresses: column("address"),
    seeds: () => all.map((one) => one.seed),
    get: (index) => all[index],
    all,
  };
}

/** A handle of the resource `queue`. */
export function queueHandle(given = {}) {
  const facts = { name: "", queued: 0, succeeded: 0, failed: 0, bytes: 0, base: 0, now: 0, ...given };
  return answers(facts, ["name", "queued", "succeeded", "failed", "bytes", "best", "base", "now"]);
}

/** A handle of the resource `page`. `counts` has numbers of elements by selector. */
export function pageHandle(given = {}) {
  const facts = {
    uri: "http://example.com/", title: "", elements: 0, textLength: 0, scrollHeight: 0, scrollTop: 0, windowHeight: 800,
    results: [], requestsInFlight: 0, timeUsed: 0, timeLeft: 60_000, step: 0, stepsLeft: 50, ...given,
  };
  return {
    ...answers(facts, [
      "uri", "title", "elements", "textLength", "scrollHeight", "scrollTop", "windowHeight", "results",
      "requestsInFlight", "timeUsed", "timeLeft", "step", "stepsLeft",
    ]),
    count: (selector) => orUndefined(facts.counts?.[selector]),
  };
}

/** Returns a stage as the host passes it. */
export const stage = (name) =>
  variantOf(name, ["scope", "pre-fetch", "mid-fetch", "post-fetch", "extract", "render", "archive", "plugin"]);

/** The contract's imports. Tests read `logged` and `counted`, and set tables in `rows`. */
export function doubleHost() {
  const host = { logged: [], counted: {}, rows: {} };
  const find = (name, key) => {
    const { kind, rows = [] } = host.rows[name] ?? {};
    const found = {
      "surt-prefixes": () =>
        rows.filter((row) => key.startsWith(row.key)).sort((one, other) => other.key.length - one.key.length)[0],
      "key-values": () => rows.findLast((row) => row.key === key),
    };
    if (!kind) return undefined;
    if (!found[kind]) throw new Error(`native tests have no tables of ${kind}: run the case with opilio plugin test`);
    const row = found[kind]();
    return row && { key: row.key, value: row.value ?? "" };
  };
  host.log = { write: (level, message) => host.logged.push({ level, message }) };
  host.counters = { count: (name, n) => (host.counted[name] = (host.counted[name] ?? 0) + n) };
  host.tables = {
    kindOf: (name) => host.rows[name] && variantOf(host.rows[name].kind, ["surt-prefixes", "regexes", "key-values"]),
    find,
    findCandidates: (name, { all }) =>
      all.map((one) => find(name, host.rows[name]?.kind === "surt-prefixes" ? one.surt : one.uri) !== undefined),
  };
  return host;
}
