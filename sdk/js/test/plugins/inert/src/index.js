// Tries to use the clock, randomness, files and the network, and reports the results.

import { flag, plugin } from "@opilio/plugin";

const OUTSIDE = [
  "fetch", "XMLHttpRequest", "WebSocket", "process", "require", "os", "std", "Deno", "Bun", "navigator", "localStorage",
  "Worker", "setTimeout", "WebAssembly", "scriptArgs", "environment", "__dirname", "FileReader", "EventSource",
];

/** Tries something that the sandbox should prevent. Returns `nothing` if it has no effect. */
function attempt(work) {
  try {
    const result = work();
    return result === undefined || result instanceof Promise ? "nothing" : `something: ${result}`;
  } catch {
    return "nothing";
  }
}

export default plugin({
  name: "inert",
  summary: "Tries to leave the sandbox, for tests.",
  settings: { fetch: flag(false, "Fetch a URI, if the engine has a function for that.") },
  extract(_, { fetch }) {
    if (fetch) globalThis.fetch?.("http://127.0.0.1/");
    const outside = OUTSIDE.filter((name) => globalThis[name] !== undefined);
    const begin = Date.now();
    let iterations = 0;
    while (iterations < 20000) iterations += 1;
    const facts = {
      outside: outside.join() || "none",
      clock: Date.now() - begin,
      date: new Date().toISOString(),
      random: Math.random(),
      environment: attempt(() => globalThis.process?.env.PATH ?? globalThis.std?.getenv("PATH")),
      file: attempt(() => globalThis.std?.open("/etc/passwd", "r") ?? globalThis.require?.("node:fs").readFileSync("/etc/passwd")),
    };
    return Object.entries(facts).map(([name, value]) => ({ uri: `${name}/${value}`, context: name }));
  },
});
