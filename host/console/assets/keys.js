// Keyboard shortcuts, and a list of them. Single letters can be disabled: speech input types them by accident (WCAG 2.1.4).

import { h, id } from "./dom.js";

const OFF = "opilio-keys-off";
const places = new Map();
let isGoing = false;

/** Sets the pages that `g` and a letter open. The open page decides about them. */
export function setPlaces(entries) {
  places.clear();
  for (const [key, title, href] of entries) places.set(key, { title, href });
}

/** Starts listening for keys. */
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

/** Shows the list of keys. */
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
    // Storage is forbidden: the choice is lost with the page. No message is needed.
  }
}
