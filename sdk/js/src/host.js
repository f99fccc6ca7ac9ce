// What the host gives besides arguments: lines for the operator, counters, tables. In a component these are the
// contract's imports; natively nothing is there until `testing.js` connects its doubles.

import { u64 } from "./wire.js";

let imports = {
  log: { write() {} },
  counters: { count() {} },
  tables: { kindOf: () => undefined, find: () => undefined, findCandidates: () => [] },
};

/** Puts the contract's imports, or a test's, in their place. */
export function connect(host) {
  imports = host;
}

const write = (level) => (message) => imports.log.write(level, String(message));

/** For the plugin's author. */
export const debug = write("debug");
/** Worth knowing. */
export const info = write("info");
/** Worth looking at. */
export const warn = write("warn");
/** Something could not be done. */
export const error = write("error");

/** Adds to the plugin's counter of that name. */
export function count(name, n = 1) {
  imports.counters.count(name, u64(n, "n"));
}

/** A list that the host holds; empty where the profile names no such table. */
export function table(name) {
  return {
    get kind() {
      const kind = imports.tables.kindOf(name);
      return kind?.val ?? kind?.tag;
    },
    find: (key) => imports.tables.find(name, key) ?? undefined,
    findCandidates: (handle) => imports.tables.findCandidates(name, handle),
  };
}
