// Server-sent events. A browser's EventSource does not reconnect after an error with an HTTP status, such as a proxy's 502 while
// the daemon restarts. So this module reconnects, after growing pauses.
// A stream is open only while its tab is visible: browsers open at most six connections to a server, and six background tabs would
// use all of them.

import { address } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30000;

/** The states of all open streams. The event "stream" has the worst: `waiting`, `live`, or `none` if no stream is open. */
const streams = new Map();

/** Follows a stream until the signal is aborted. `handlers`: a function for each event name; `back` runs after a reconnection. */
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
      publish(key, { state: "live" });
      if (isBack) handlers.back?.();
    });
    source.addEventListener("error", () => {
      source.close();
      hasMissed = true;
      const wait = pause * (0.75 + Math.random() / 2);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
      publish(key, { state: "waiting", until: Date.now() + wait, now: reload });
      timer = setTimeout(open, wait);
      // EventSource does not report the reason of an error. The session may have ended.
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
    publish();
  };
  const reload = () => {
    clearTimeout(timer);
    source?.close();
    open();
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : reload()), { signal });
  window.addEventListener("signed-in", () => streams.get(key)?.state === "waiting" && reload(), { signal });
  signal.addEventListener("abort", close);
  if (!document.hidden) open();
}

function publish(key, state) {
  if (key) streams.set(key, state);
  const all = [...streams.values()];
  const worst = all.find((one) => one.state === "waiting") ?? all[0] ?? { state: "none" };
  window.dispatchEvent(new CustomEvent("stream", { detail: worst }));
}
