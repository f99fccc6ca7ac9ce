// Looks for a way out of the sandbox and reports what it found.

import { flag, plugin } from "@opilio/plugin";

const OUTSIDE = [
  "fetch", "XMLHttpRequest", "WebSocket", "process", "require", "os", "std", "Deno", "Bun", "navigator", "localStorage",
  "Worker", "setTimeout", "WebAssembly", "scriptArgs", "environment", "__dirname", "FileReader", "EventSource",
];

/** Tries something that would lead out of the sandbox. */
function tried(work) {
  try {
    const came = work();
    return came === undefined || came instanceof Promise ? "nothing" : `something: ${came}`;
  } catch {
    return "nothing";
  }
}

export default plugin({
  name: "inert",
  summary: "Looks for a way out, for tests.",
  settings: { fetch: flag(false, "Whether it asks for a URI, where its engine has a function for that.") },
  extract(_, { fetch }) {
    if (fetch) globalThis.fetch?.("http://127.0.0.1/");
    const outside = OUTSIDE.filter((name) => globalThis[name] !== undefined);
    const begin = Date.now();
    let turns = 0;
    while (turns < 20000) turns += 1;
    const facts = {
      outside: outside.join() || "none",
      clock: Date.now() - begin,
      date: new Date().toISOString(),
      random: Math.random(),
      environment: tried(() => globalThis.process?.env.PATH ?? globalThis.std?.getenv("PATH")),
      file: tried(() => globalThis.std?.open("/etc/passwd", "r") ?? globalThis.require?.("node:fs").readFileSync("/etc/passwd")),
    };
    return Object.entries(facts).map(([name, value]) => ({ uri: `${name}/${value}`, context: name }));
  },
});
