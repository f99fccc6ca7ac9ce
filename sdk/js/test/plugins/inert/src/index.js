// Looks for a way out, and says what it found.

import { plugin } from "@opilio/plugin";

const OUTSIDE = [
  "fetch", "XMLHttpRequest", "WebSocket", "process", "require", "os", "std", "Deno", "Bun", "navigator", "localStorage",
  "Worker", "setTimeout", "WebAssembly", "scriptArgs",
];

export default plugin({
  name: "inert",
  summary: "Looks for a way out, for tests.",
  extract() {
    const outside = OUTSIDE.filter((name) => globalThis[name] !== undefined);
    const begin = Date.now();
    let turns = 0;
    while (turns < 20000) turns += 1;
    const facts = {
      outside: outside.join() || "none",
      clock: Date.now() - begin,
      date: new Date().toISOString(),
      random: Math.random(),
    };
    return Object.entries(facts).map(([name, value]) => ({ uri: String(value), context: name }));
  },
});
