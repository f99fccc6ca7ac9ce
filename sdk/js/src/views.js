// The arguments of plugins. Facts are properties. Methods copy content, or take arguments. Each view has a handle of the
// contract, from the host or from a test.

import { latin1 } from "./bytes.js";
import { table } from "./host.js";
import { plain, u64 } from "./wire.js";

/** Largest read of `content` in one call of the host. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** Defines properties that call the handle when they are read. */
function defineFacts(view, names) {
  for (const name of names) {
    Object.defineProperty(view.prototype, name, {
      get() {
        return plain(this.handle[name]());
      },
    });
  }
}

/** Values that a plugin keeps from visit to visit. */
class KeptValues {
  constructor(handle) {
    this.handle = handle;
  }
  attribute(name) {
    return plain(this.handle.attribute(name));
  }
  setAttribute(name, value) {
    this.handle.setAttribute(name, String(value));
  }
  siteValue(name) {
    return plain(this.handle.siteValue(name));
  }
  setSiteValue(name, value) {
    this.handle.setSiteValue(name, String(value));
  }
  note(name) {
    return plain(this.handle.note(name));
  }
}

/** A response, or a fragment of one. */
export class Document extends KeptValues {
  header(name) {
    return this.handle.header(name);
  }
  read(offset, length) {
    return this.handle.read(u64(offset, "offset"), length);
  }
  text() {
    return this.handle.text();
  }
  /** The whole content. */
  content() {
    const length = this.length;
    const content = new Uint8Array(length);
    for (let at = 0; at < length; ) {
      const part = this.read(at, READ_BYTES_MAX);
      if (part.length === 0) return content.subarray(0, at);
      content.set(part, at);
      at += part.length;
    }
    return content;
  }
  /** The whole content with one character for each byte. */
  latin1() {
    return latin1(this.content());
  }
  setNote(name, value) {
    this.handle.setNote(name, String(value));
  }
  annotate(annotation) {
    this.handle.annotate(String(annotation));
  }
}
defineFacts(Document, ["uri", "base", "status", "headers", "mediaType", "charset", "fragment", "length"]);

/** The facts about a URI at this visit. */
export class Visit extends KeptValues {
  get candidate() {
    return new WholeCandidate(plain(this.handle.candidate()));
  }
  validator(name) {
    return plain(this.handle.validator(name));
  }
  measure(name) {
    return plain(this.handle.measure(name));
  }
}
defineFacts(Visit, [
  "now", "status", "mediaType", "state", "size", "lastWait", "overdue", "visits", "versions", "history", "outlinks",
  "inlinks", "signals", "neighbourhood",
]);

/** A queue to rank. */
export class Queue {
  constructor(handle) {
    this.handle = handle;
  }
}
defineFacts(Queue, ["name", "queued", "succeeded", "failed", "bytes", "best", "base", "now"]);

/** A page in a browser, as it was just before the call. */
export class Page {
  constructor(handle) {
    this.handle = handle;
  }
  count(selector) {
    return plain(this.handle.count(selector));
  }
}
defineFacts(Page, [
  "uri", "title", "elements", "textLength", "scrollHeight", "scrollTop", "windowHeight", "results", "requestsInFlight",
  "timeUsed", "timeLeft", "step", "stepsLeft",
]);

/** The candidates of a call, in the order found. */
export class Candidates {
  #columns = {};

  constructor(handle) {
    this.handle = handle;
    this.length = handle.length();
  }
  *[Symbol.iterator]() {
    for (let index = 0; index < this.length; index++) yield new Candidate(this, index);
  }
  /** Returns true for each candidate that has a row in the table. */
  inTable(name) {
    return (this.#columns[`table ${name}`] ??= table(name).findCandidates(this.handle));
  }
  /** Returns a column. The host returns it when its first value is read. */
  column(name) {
    return (this.#columns[name] ??= this.#column(name));
  }
  #column(name) {
    const column = this.handle[name]();
    // A column of texts is one text with a line for each candidate.
    return typeof column === "string" ? column.split("\n") : column;
  }
}

/** A candidate of a call. */
class Candidate {
  constructor(all, index) {
    this.all = all;
    this.index = index;
  }
  get seed() {
    return this.all.column("seeds")[this.index];
  }
  get attributes() {
    return plain(this.all.handle.get(this.index)).attributes;
  }
  isInTable(name) {
    return this.all.inTable(name)[this.index];
  }
}
const TEXTS = { uri: "uris", surt: "surts", hopPath: "hopPaths", context: "contexts" };
const OPTIONAL_TEXTS = { via: "vias", viaSurt: "viaSurts", source: "sources", address: "addresses" };
for (const [name, column] of Object.entries(TEXTS)) {
  Object.defineProperty(Candidate.prototype, name, {
    get() {
      return this.all.column(column)[this.index];
    },
  });
}
for (const [name, column] of Object.entries(OPTIONAL_TEXTS)) {
  Object.defineProperty(Candidate.prototype, name, {
    get() {
      return this.all.column(column)[this.index] || undefined;
    },
  });
}

/** The candidate of a visit. The host returns it as a whole. */
class WholeCandidate {
  constructor(facts) {
    Object.assign(this, facts);
  }
  isInTable(name) {
    const rows = table(name);
    return rows.find(rows.kind === "surt-prefixes" ? this.surt : this.uri) !== undefined;
  }
}
