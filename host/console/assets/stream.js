// Server-sent events. The browser's own way of coming back gives up at the first error that has a status, as when a proxy
// stands before a daemon that starts again; so each stream is opened anew here, after a pause that grows.

import { address } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

/** What all open streams are: `live`, `waiting` or, where none is open, `none`. Told to whoever listens for "stream". */
const streams = new Map();

/** Follows a stream until the signal says that it is enough. `handlers`: a function for each name of an event. */
export function follow(path, handlers, signal) {
  const key = Symbol(path);
  let pause = FIRST_PAUSE;
  let source;
  let timer;

  const open = () => {
    source = new EventSource(address(path), { withCredentials: true });
    source.addEventListener("open", () => {
      const wasAway = pause !== FIRST_PAUSE;
      pause = FIRST_PAUSE;
      tell(key, { state: "live" });
      if (wasAway) handlers.back?.();
    });
    source.addEventListener("error", () => {
      source.close();
      const wait = pause * (0.75 + Math.random() / 2);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
      tell(key, { state: "waiting", until: Date.now() + wait, now: again });
      timer = setTimeout(open, wait);
      // A stream does not say why it ends; it may be for want of a session.
      window.dispatchEvent(new Event("stream-lost"));
    });
    for (const [name, handler] of Object.entries(handlers)) {
      if (name === "back") continue;
      source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
    }
  };
  const again = () => {
    clearTimeout(timer);
    source.close();
    open();
  };
  window.addEventListener("signed-in", () => streams.get(key)?.state === "waiting" && again(), { signal });
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    source.close();
    streams.delete(key);
    tell();
  });
  open();
}

function tell(key, state) {
  if (key) streams.set(key, state);
  const all = [...streams.values()];
  const worst = all.find((one) => one.state === "waiting") ?? all[0] ?? { state: "none" };
  window.dispatchEvent(new CustomEvent("stream", { detail: worst }));
}
