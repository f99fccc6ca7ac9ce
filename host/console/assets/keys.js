// Keys for those who work here all day, and a list of them. A single letter is easily hit by those who speak to their
// computer, so that single keys can be switched off.

import { h, id } from "./dom.js";

const OFF = "opilio-keys-off";
const places = new Map();
let isGoing = false;

/** Where `g` and a letter lead; the page that is open says it. */
export function setPlaces(entries) {
  places.clear();
  for (const [key, title, href] of entries) places.set(key, { title, href });
}

/** Listens for keys from now on. */
export function listen({ theme }) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const isTyping = target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "Escape" && isTyping && !document.querySelector("dialog[open]")) return void target.blur();
    if (isTyping || document.querySelector("dialog[open]") || isOff()) return;
    if (isGoing) {
      isGoing = false;
      const place = places.get(event.key);
      if (place) {
        event.preventDefault();
        location.hash = place.href;
      }
      return;
    }
    if (event.key === "/") {
      const search = document.querySelector("main [data-search]") ?? document.querySelector("[data-search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select?.();
      }
    } else if (event.key === "?") {
      event.preventDefault();
      help();
    } else if (event.key === "t") theme();
    else if (event.key === "g") {
      isGoing = true;
      setTimeout(() => (isGoing = false), 1500);
    }
  });
}

/** Shows the keys. */
export function help() {
  const heading = id("keys");
  const row = (keys, text) => h("div", {}, h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, text));
  const dialog = h("dialog", { "aria-labelledby": heading, onclose: () => dialog.remove() });
  const off = h("input", { type: "checkbox", checked: isOff(), id: id("off"), onchange: () => setOff(off.checked) });
  dialog.append(
    h("h2", { id: heading }, "Keys"),
    h(
      "dl.keys",
      {},
      row("/", "search the page"),
      row("?", "show this list"),
      row("t", "change colours: system, light, dark"),
      row("Esc", "leave a field, a list or a dialog"),
      row("← →", "move along a focused chart"),
      [...places].map(([key, place]) => row(`g ${key}`, place.title)),
    ),
    h("div.check", {}, off, h("label", { for: off.id }, "Disable single keys")),
    h("form", { method: "dialog" }, h("div.actions", {}, h("button.button.primary", {}, "Close"))),
  );
  document.body.append(dialog);
  dialog.showModal();
}

function isOff() {
  try {
    return localStorage.getItem(OFF) === "yes";
  } catch {
    return false;
  }
}

function setOff(isWanted) {
  try {
    if (isWanted) localStorage.setItem(OFF, "yes");
    else localStorage.removeItem(OFF);
  } catch {
    // Where storage is forbidden it holds for no longer than the page; there is nothing to be told.
  }
}
