// Functions of the host: log lines, counters, tables. A component uses the contract's imports. Native tests use those that
// `testing.js` connects.

import { u64 } from "./wire.js";

let imports = {
  log: { write() {} },
  counters: { count() {} },
  tables: { kindOf: () => undefined, find: () => undefined, findCandidates: () => [] },
};

/** Sets the imports to use. */
export function connect(host) {
  imports = host;
}

const write = (level) => (message) => imports.log.write(level, String(message));

/** Writes a log line for the plugin's author. */
export const debug = write("debug");
/** Writes a log line of general interest. */
export const info = write("info");
/** Writes a log line about something unusual. */
export const warn = write("warn");
/** Writes a log line about an error. */
export const error = write("error");

/** Adds to the plugin's counter of this name. */
export function count(name, n = 1) {
  imports.counters.count(name, u64(n, "n"));
}

/** Returns a table of the host. If the profile has no table of this name, look-ups find nothing. */
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
