// What plugins are asked about, as they read it: facts are properties, what costs a copy of the content is a method.
// Each view stands before a handle of the contract, the host's or a test's.

import { latin1 } from "./bytes.js";
import { table } from "./host.js";
import { plain, u64 } from "./wire.js";

/** Largest single read of `content`; bounds one call's copy. */
const READ_BYTES_MAX = 8 * 1024 * 1024;

/** Properties that ask the handle when they are read. */
function facts(view, names) {
  for (const name of names) {
    Object.defineProperty(view.prototype, name, {
      get() {
        return plain(this.handle[name]());
      },
    });
  }
}

/** Values that a plugin keeps from visit to visit. */
class Keeping {
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
export class Document extends Keeping {
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
facts(Document, ["uri", "base", "status", "headers", "mediaType", "charset", "fragment", "length"]);

/** The URI's standing in the crawl. */
export class Visit extends Keeping {
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
facts(Visit, [
  "now", "status", "mediaType", "state", "size", "lastWait", "overdue", "visits", "versions", "history", "outlinks",
  "inlinks", "signals", "neighbourhood",
]);

/** A queue that is to be ranked. */
export class Queue {
  constructor(handle) {
    this.handle = handle;
  }
}
facts(Queue, ["name", "queued", "succeeded", "failed", "bytes", "best", "base", "now"]);

/** All candidates of a call, in the order found. */
export class Candidates {
  #columns = {};

  constructor(handle) {
    this.handle = handle;
    this.length = handle.length();
  }
  *[Symbol.iterator]() {
    for (let index = 0; index < this.length; index++) yield new Candidate(this, index);
  }
  /** Which of them have a row in a table. */
  inTable(name) {
    return (this.#columns[`table ${name}`] ??= table(name).findCandidates(this.handle));
  }
  /** A column comes from the host when the first of its values is looked at. */
  column(name) {
    return (this.#columns[name] ??= this.#column(name));
  }
  #column(name) {
    const column = this.handle[name]();
    // A text has a line for each candidate.
    return typeof column === "string" ? column.split("\n") : column;
  }
}

/** One of several candidates. */
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

/** The candidate of a visit, which the host hands over whole. */
class WholeCandidate {
  constructor(facts) {
    Object.assign(this, facts);
  }
  isInTable(name) {
    const rows = table(name);
    return rows.find(rows.kind === "surt-prefixes" ? this.surt : this.uri) !== undefined;
  }
}
