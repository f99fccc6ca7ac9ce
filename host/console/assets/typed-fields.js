// Typed fields beside lines of settings, as in a profile: `politeness.min-delay = "5s"`. A change in one is shown in the other.
// Settings that are written in TOML only, and settings of plugins, have lines but no fields.

import { h, put } from "./dom.js";
import { Field, fieldsOf } from "./fields.js";
import { choice, failed, field } from "./notice.js";
import { readSchema } from "./profile-editor.js";
import { resolve } from "./schema.js";

/** Parts of an override that have no fields. */
const NOT_SETTINGS = ["match", "plugins", "stacks"];

/** The settings of a whole job that have fields, from the schema of profiles. */
export function settingsOfJob(schema) {
  return fieldsOf(schema, schema);
}

/** The settings that an override can set and that have fields. */
export function settingsOfOverride(schema) {
  const node = resolve(schema, resolve(schema, schema.properties.override).items);
  return fieldsOf(schema, node).filter((one) => !NOT_SETTINGS.includes(one.path[0]));
}

/**
 * The fields; `lines` is the text area with the lines. `settings(schema)` returns the settings that have fields. With
 * `isRemovable`, emptying a field removes its line; otherwise the line gets the default.
 */
export class TypedFields {
  constructor(lines, { settings, isRemovable = false }) {
    this.lines = lines;
    this.settings = settings;
    this.isRemovable = isRemovable;
    this.fields = new Map();
    this.turn = 0;
    this.element = h("div");
    lines.addEventListener("input", () => this.read());
  }

  /** The settings that can have a field: `{ key, description, … }`, as `fieldsOf` describes them. */
  async available() {
    return this.settings(await readSchema())
      .filter((one) => one.kind !== "other")
      .map((one) => ({ ...one, key: one.path.join(".") }));
  }

  /** Adds a field for a setting, if it can have one, with the value of its line. Resolves to the field, or to undefined. */
  async add(key, value = this.value(key)) {
    const turn = this.turn;
    const found = (await this.available()).find((one) => one.key === key);
    // The fields were cleared meanwhile.
    if (turn !== this.turn) return undefined;
    if (!found || this.fields.has(key)) return this.fields.get(key);
    const one = new Field(found, {
      label: key,
      reset: this.isRemovable ? "Leave unset" : undefined,
      onchange: (changed) => {
        const next = changed ?? (this.isRemovable ? undefined : (found.preset ?? undefined));
        // Without a default the line stays, and the field shows it again.
        if (next === undefined && !this.isRemovable) return this.read();
        this.write(key, next);
        one.show(next);
      },
    });
    this.fields.set(key, one);
    one.show(value);
    this.element.append(one.element);
    return one;
  }

  /** The value in the line of a setting; undefined if the setting has no line. */
  value(key) {
    const line = this.lines.value.split("\n").find(isOf(key));
    return line && parse(line.slice(line.indexOf("=") + 1));
  }

  /** Whether there is a line of a setting. */
  hasLine(key) {
    return this.lines.value.split("\n").some(isOf(key));
  }

  /** Writes the line of a setting, or removes it. */
  write(key, value) {
    const others = this.lines.value.split("\n").filter((line) => line.trim() !== "");
    const at = others.findIndex(isOf(key));
    if (at >= 0) others.splice(at, 1);
    if (value !== undefined) others.splice(at < 0 ? others.length : at, 0, `${key} = ${toml(value)}`);
    this.lines.value = others.join("\n");
  }

  /** Reads the lines into the fields. An unfinished line changes nothing. */
  read() {
    for (const [key, one] of this.fields) {
      const value = this.value(key);
      if (!this.hasLine(key) || value !== undefined) one.show(value);
    }
  }

  /** Shows errors at their fields. */
  showFaults(faults) {
    for (const [key, one] of this.fields) {
      const pointer = `/${key.replaceAll(".", "/")}`;
      const places = faults.map((fault) => (fault.setting ?? "").replace(/^\/override\/\d+/, ""));
      one.showFaults(faults.filter((_, n) => places[n] === pointer || places[n].startsWith(`${pointer}/`)));
    }
  }

  clear() {
    this.turn += 1;
    this.fields.clear();
    put(this.element);
  }
}

/** A choice of settings, and a button that adds a field for the chosen one. */
export function settingChooser(typed) {
  const pick = choice({}, [], "");
  const add = h("button.button", { type: "button" }, "Add setting");
  typed
    .available()
    .then((settings) => {
      const groups = new Map();
      for (const setting of settings) {
        const name = setting.path.length === 1 ? "General" : setting.path[0];
        groups.set(name, [...(groups.get(name) ?? []), setting]);
      }
      put(
        pick,
        [...groups].map(([name, own]) => h("optgroup", { label: name }, own.map(({ key, description }) => h("option", { value: key, title: description.replaceAll("`", "") }, key)))),
      );
    })
    .catch(failed);
  add.addEventListener("click", async () => {
    try {
      const one = await typed.add(pick.value);
      one?.control.inputs[0].focus();
    } catch (problem) {
      failed(problem);
    }
  });
  return h("div.toolbar.adder", {}, field("Setting to add", pick), add);
}

function isOf(key) {
  return (line) => line.trimStart().startsWith(key) && /^\s*=/.test(line.trimStart().slice(key.length));
}

// A value of a field in TOML: texts and lists are written as in JSON.
function toml(value) {
  if (Array.isArray(value)) return `[${value.map(toml).join(", ")}]`;
  if (typeof value !== "object") return JSON.stringify(value);
  const entries = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)} = ${toml(one)}`);
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}

// The value of a line; undefined if the line is not finished, or TOML of another form.
function parse(text) {
  const trimmed = text.trim();
  const literal = /^'([^']*)'$/.exec(trimmed);
  if (literal) return literal[1];
  const table = /^\{(.*)\}$/.exec(trimmed);
  try {
    return JSON.parse(table ? `{${jsonPairs(table[1])}}` : trimmed);
  } catch {
    return undefined;
  }
}

// The pairs of a table on one line, `key = "text"`, as in JSON.
function jsonPairs(text) {
  return text.replaceAll(/("(?:[^"\\]|\\.)*"|[A-Za-z0-9_-]+)\s*=\s*("(?:[^"\\]|\\.)*")/g, (_, key, value) => `${key.startsWith('"') ? key : JSON.stringify(key)}: ${value}`);
}
