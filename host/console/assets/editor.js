// An editor for TOML: line numbers, errors beside their lines, and suggestions for the name of the setting that is being typed.
// It is an ordinary text area, so everything else works as users expect.

import { h, id, put } from "./dom.js";
import { faultText, isInSeeds } from "./notice.js";
import { keysAt } from "./schema.js";

const LINE = 20;
const PAD = 7;
const SHOWN_MAX = 40;

/** An editor. `check(text)` resolves to the errors of the text; `schema` is the JSON Schema for suggestions. */
export class Editor {
  constructor({ label, value = "", rows = 24, check, onchange, isReadOnly = false }) {
    this.check = check;
    this.onchange = onchange;
    this.schema = null;
    this.chosen = -1;
    this.list = h("ul.proposals", { role: "listbox", id: id("proposals"), "aria-label": "Settings", hidden: true });
    this.area = h("textarea", {
      "aria-label": label,
      rows,
      value,
      readonly: isReadOnly,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      "aria-controls": this.list.id,
      "aria-autocomplete": "list",
    });
    this.gutter = h("div.gutter", { "aria-hidden": "true" });
    this.faults = h("ul.faults");
    this.verdict = h("p.hint", { role: "status" });
    this.element = h("div", {}, h("div.editor", {}, this.gutter, this.area, this.list), this.verdict, this.faults);
    this.area.addEventListener("input", () => this.changed());
    this.area.addEventListener("scroll", () => (this.gutter.scrollTop = this.area.scrollTop));
    this.area.addEventListener("keydown", (event) => this.key(event));
    // A click on an error moves the focus here.
    this.area.addEventListener("blur", () => setTimeout(() => document.activeElement === this.area || this.close(), 150));
    new ResizeObserver(() => (this.gutter.style.height = `${this.area.offsetHeight}px`)).observe(this.area);
    this.number([]);
  }

  get value() {
    return this.area.value;
  }

  set value(text) {
    this.area.value = text;
    this.close();
    this.changed(false);
  }

  /** Replaces the text, for example when a setting was changed, and scrolls to the first line that differs. */
  replace(text) {
    const [before, after] = [this.area.value.split("\n"), text.split("\n")];
    const first = after.findIndex((line, n) => line !== before[n]);
    const top = this.area.scrollTop;
    this.value = text;
    const line = first < 0 ? after.length - 1 : first;
    const isSeen = line * LINE >= top && (line + 2) * LINE <= top + this.area.clientHeight;
    this.area.scrollTop = isSeen ? top : Math.max(0, (line - 4) * LINE);
  }

  changed(isTyped = true) {
    this.number(this.marks ?? []);
    this.onchange?.(this.area.value, isTyped);
    if (isTyped) this.propose(!this.list.hidden);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.validate(), 500);
  }

  /** Has the text checked and shows its errors. Resolves to true if there are none. */
  async validate() {
    if (!this.check) return true;
    const text = this.area.value;
    let faults;
    try {
      faults = await this.check(text);
    } catch (problem) {
      // Settings that may not be written over the API at all are reported in one sentence.
      const faults = problem.isUnreachable ? [] : [{ problem: problem.message }];
      this.show(faults);
      if (problem.isUnreachable) put(this.verdict, "Cannot check the profile now: the daemon is unreachable.");
      return false;
    }
    if (text !== this.area.value) return false;
    this.show(faults);
    return faults.every((fault) => fault.level && fault.level !== "error");
  }

  /** Shows errors at their lines. */
  show(faults) {
    this.marks = faults;
    this.number(faults);
    const errors = faults.filter((fault) => !fault.level || fault.level === "error").length;
    const rest = faults.length - errors;
    put(
      this.verdict,
      faults.length === 0
        ? "No errors."
        : [errors > 0 && `${errors} ${errors === 1 ? "error" : "errors"}`, rest > 0 && `${rest} ${rest === 1 ? "warning" : "warnings"}`].filter(Boolean).join(", "),
    );
    put(
      this.faults,
      faults.map((fault) =>
        h(
          "li",
          { class: fault.level && fault.level !== "error" ? "warn-text" : "bad-text" },
          fault.line && !isInSeeds(fault) ? h("button.bare", { type: "button", onclick: () => this.go(fault) }, faultText(fault)) : faultText(fault),
        ),
      ),
    );
  }

  go({ line, column = 1 }) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + column - 1;
    this.area.focus();
    this.area.setSelectionRange(start, start);
    this.area.scrollTop = Math.max(0, (line - 5) * LINE);
  }

  number(faults) {
    const lines = this.area.value.split("\n").length;
    const own = faults.filter((fault) => !isInSeeds(fault));
    const kinds = new Map(own.map((fault) => [fault.line, !fault.level || fault.level === "error" ? "bad" : "warn"]));
    put(
      this.gutter,
      Array.from({ length: lines }, (_, n) => {
        const kind = kinds.get(n + 1);
        return h("div", { class: kind }, kind ? `${kind === "bad" ? "✕" : "!"} ${n + 1}` : String(n + 1));
      }),
    );
    this.gutter.scrollTop = this.area.scrollTop;
  }

  key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.propose(true);
      return;
    }
    if (this.list.hidden) return;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const count = this.proposals.length;
      this.choose((this.chosen + (event.key === "ArrowDown" ? 1 : -1) + count) % count);
    } else if (event.key === "Enter" || event.key === "Tab") {
      event.preventDefault();
      this.insert(this.chosen);
    }
  }

  propose(isAsked) {
    if (!this.schema || this.area.selectionStart !== this.area.selectionEnd) return this.close();
    const before = this.area.value.slice(0, this.area.selectionStart);
    const found = keysAt(this.schema, before);
    if (!found || found.keys.length === 0 || (!isAsked && found.typed.length < 2)) return this.close();
    if (found.keys.length === 1 && found.keys[0].name === found.typed) return this.close();
    this.typed = found.typed;
    this.proposals = found.keys.slice(0, SHOWN_MAX);
    put(
      this.list,
      this.proposals.map((key, n) =>
        h(
          "li",
          { role: "option", id: `${this.list.id}-${n}`, onmousedown: (event) => (event.preventDefault(), this.insert(n)) },
          h("code", {}, key.name),
          key.description && h("small", {}, key.description.split("\n")[0]),
        ),
      ),
    );
    const line = before.split("\n").length;
    this.list.style.top = `${Math.min(line * LINE + PAD - this.area.scrollTop, this.area.clientHeight - 20)}px`;
    this.list.style.left = `${this.gutter.offsetWidth + 12}px`;
    this.list.hidden = false;
    this.choose(0);
  }

  choose(n) {
    this.chosen = n;
    [...this.list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === n)));
    this.list.children[n]?.scrollIntoView({ block: "nearest" });
    this.area.setAttribute("aria-activedescendant", `${this.list.id}-${n}`);
  }

  insert(n) {
    const { name, isTable } = this.proposals[n];
    const at = this.area.selectionStart;
    const end = isTable ? "" : " = ";
    this.area.setRangeText(name + end, at - this.typed.length, at, "end");
    this.close();
    this.changed(false);
    this.area.focus();
  }

  close() {
    this.list.hidden = true;
    put(this.list);
    this.area.removeAttribute("aria-activedescendant");
  }
}
