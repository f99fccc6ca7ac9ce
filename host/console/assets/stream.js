// Server-sent events. The browser's own way of coming back gives up at the first error that has a status, as when a proxy
// stands before a daemon that starts again; so each stream is opened anew here, after a pause that grows.
// A stream is open only while its tab is seen: browsers open six connections to a server, and six tabs in the background would leave
// none for anything else.

import { address } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

/** What all open streams are: `live`, `waiting` or, where none is open, `none`. Told to whoever listens for "stream". */
const streams = new Map();

/** Follows a stream until the signal says that it is enough. `handlers`: a function for each name of an event. */
export function follow(path, handlers, signal) {
  const key = Symbol(path);
  let pause = FIRST_PAUSE;
  let hasMissed = false;
  let source;
  let timer;

  const open = () => {
    source = new EventSource(address(path), { withCredentials: true });
    source.addEventListener("open", () => {
      const isBack = hasMissed;
      pause = FIRST_PAUSE;
      hasMissed = false;
      tell(key, { state: "live" });
      if (isBack) handlers.back?.();
    });
    source.addEventListener("error", () => {
      source.close();
      hasMissed = true;
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
  const close = () => {
    clearTimeout(timer);
    source?.close();
    streams.delete(key);
    hasMissed = true;
    tell();
  };
  const again = () => {
    clearTimeout(timer);
    source?.close();
    open();
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : again()), { signal });
  window.addEventListener("signed-in", () => streams.get(key)?.state === "waiting" && again(), { signal });
  signal.addEventListener("abort", close);
  if (!document.hidden) open();
}

function tell(key, state) {
  if (key) streams.set(key, state);
  const all = [...streams.values()];
  const worst = all.find((one) => one.state === "waiting") ?? all[0] ?? { state: "none" };
  window.dispatchEvent(new CustomEvent("stream", { detail: worst }));
}
