// Form fields for single settings, from their JSON Schema: a control of the right type, with unit, default, help and errors. An
// empty field is not written to the profile, so its setting has the default.

import { h, id, put } from "./dom.js";
import { faultText } from "./notice.js";
import { properties, resolve } from "./schema.js";

const UNITS = {
  Duration: [["ms", "milliseconds"], ["s", "seconds"], ["m", "minutes"], ["h", "hours"], ["d", "days"], ["w", "weeks"]],
  Size: [["B", "bytes"], ["KiB", "KiB"], ["MiB", "MiB"], ["GiB", "GiB"], ["TiB", "TiB"]],
};
const USUAL = { Duration: "s", Size: "MiB" };
const DEPTH_MAX = 4;

/** The fields below a node of a schema, with their paths: `{ path, name, node, kind, description, isExpert }`. */
export function fieldsOf(schema, node, path = [], prefix = "", depth = 0) {
  return Object.entries(properties(schema, node)).flatMap(([name, property]) => {
    const found = describe(schema, property);
    const at = [...path, name];
    const isTable = found.kind === "other" && Object.keys(properties(schema, found.node)).length > 0 && !isList(found.node);
    if (isTable && depth < DEPTH_MAX) {
      return fieldsOf(schema, found.node, at, `${prefix}${name}.`, depth + 1).map((field) => ({ ...field, isExpert: field.isExpert || found.isExpert }));
    }
    return [{ ...found, path: at, name: prefix + name }];
  });
}

function rangeOf({ minimum, maximum }) {
  return { min: minimum, max: maximum };
}

function isList(node) {
  return [node.type].flat().includes("array");
}

function describe(schema, property) {
  const parts = [property, ...(property.allOf ?? []), ...(property.anyOf ?? [])];
  const reference = parts.map((part) => part.$ref).find(Boolean);
  const node = resolve(schema, parts.find((part) => part.$ref) ?? parts.find((part, n) => n > 0 && part.type !== "null") ?? property);
  const named = reference?.split("/").at(-1);
  const get = (key) => property[key] ?? node[key];
  const choices = optionsOf(node);
  const types = [get("type")].flat().filter((type) => type && type !== "null");
  let kind = "other";
  if (UNITS[named]) kind = named;
  else if (named === "Count") kind = "count";
  else if (choices) kind = "choice";
  else if (types.length === 1 && types[0] === "boolean") kind = "yes-no";
  else if (types.length === 1 && (types[0] === "integer" || types[0] === "number")) kind = types[0];
  else if (types.length === 1 && types[0] === "string") kind = "text";
  else if (types.length === 1 && types[0] === "array" && resolve(schema, get("items") ?? {}).type === "string") kind = "list";
  else if (types.length === 1 && types[0] === "array" && resolve(schema, get("items") ?? {}).type === "integer") kind = "numbers";
  else if (types.length === 1 && types[0] === "object" && resolve(schema, get("additionalProperties") || {}).type === "string") kind = "map";
  else if (types.length === 1 && types[0] === "array" && optionsOf(resolve(schema, get("items") ?? {}))) kind = "set";
  return {
    node,
    kind,
    choices: kind === "set" ? optionsOf(resolve(schema, get("items"))) : choices,
    ...(kind === "numbers" ? rangeOf(resolve(schema, get("items"))) : rangeOf({ minimum: get("minimum"), maximum: get("maximum") })),
    preset: get("default"),
    example: [get("examples") ?? []].flat()[0],
    description: property.description ?? node.description ?? "",
    isExpert: Boolean(get("x-opilio-expert")),
  };
}

function optionsOf(node) {
  if (Array.isArray(node.enum)) return node.enum.filter((value) => value !== null).map((value) => [value, ""]);
  const consts = node.oneOf?.map((one) => (one.const === undefined ? one.enum?.map((value) => [value, ""]) : [[one.const, one.description ?? ""]]));
  return consts?.every(Boolean) ? consts.flat() : null;
}

/** A value as text, for a placeholder or a sentence. */
export function valueText(value) {
  if (value === undefined || value === null) return "not set";
  if (Array.isArray(value)) return value.length === 0 ? "none" : value.map(valueText).join(", ");
  if (value === true) return "yes";
  if (value === false) return "no";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * The changes of a profile's text that give a setting this value; undefined removes the setting. A map is changed entry by entry,
 * so that comments beside its other entries are kept. `before` is the value in the text.
 */
export function changesOf({ kind, path }, before, value) {
  const isMap = kind === "map" && value !== undefined && before !== null && typeof before === "object" && !Array.isArray(before);
  if (!isMap) return [{ path, value: value ?? null }];
  // Entries are removed last, because a table without entries would be removed, too.
  const set = Object.entries(value).filter(([name, text]) => before[name] !== text);
  const removed = Object.keys(before).filter((name) => !Object.hasOwn(value, name));
  return [...set.map(([name, text]) => ({ path: [...path, name], value: text })), ...removed.map((name) => ({ path: [...path, name], value: null }))];
}

/** The content of a field that is not a valid value of its setting. */
class Invalid {
  constructor(problem) {
    this.problem = problem;
  }
}

/** A field. `onchange(value)` gets the new value; undefined means that the setting is not written. */
export class Field {
  constructor(field, { label = field.name, hint = field.description, reset = "Use default", onchange, isReadOnly = false }) {
    this.field = field;
    this.onchange = onchange;
    const name = id("setting");
    this.control = controlOf(field, name, () => this.changed(), isReadOnly);
    this.fault = h("p.form-error", { id: `${name}-fault`, hidden: true });
    this.note = h("p.hint", { id: `${name}-note`, hidden: true });
    this.reset = h("button.button.small", { type: "button", hidden: true, "aria-label": `${reset}: ${label}`, onclick: () => this.clear() }, reset);
    this.origin = h("span.muted");
    for (const input of this.control.inputs) {
      input.setAttribute("aria-describedby", `${name}-hint ${name}-fault ${name}-note`);
      // Enter must not submit a form around the field.
      input.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || input.tagName === "TEXTAREA") return;
        event.preventDefault();
        this.changed();
      });
    }
    const isGroup = this.control.inputs.length > 1 || field.kind === "set";
    this.element = h(
      isGroup ? "fieldset.setting" : "div.setting",
      {},
      h(isGroup ? "legend" : "label", isGroup ? {} : { for: name }, label),
      h("div.setting-value", {}, this.control.element, isReadOnly ? false : this.reset, this.origin),
      this.fault,
      this.note,
      h("p.hint", { id: `${name}-hint` }, hint.replaceAll("`", "")),
    );
  }

  /** Shows the setting's value in the text, or the inherited value if the text does not have it. */
  show(written, inherited = this.field.preset) {
    this.inherited = inherited;
    this.isWritten = written !== undefined;
    // The field in which the user types is not changed.
    if (!this.control.inputs.some((input) => input === document.activeElement && input.tagName !== "SELECT" && input.type !== "checkbox")) this.control.show(written, inherited);
    this.reset.hidden = !this.isWritten;
    put(this.origin, this.isWritten ? "set here" : "");
  }

  /** Shows errors in the value, and notes about it. */
  showFaults(faults) {
    const texts = (some) => some.map((fault) => faultText({ ...fault, line: undefined, setting: undefined })).join(" ");
    const notes = faults.filter((fault) => fault.level === "info");
    const errors = faults.filter((fault) => fault.level !== "info");
    const isWrong = errors.length > 0;
    put(this.note, notes.length > 0 && `Note: ${texts(notes)}`);
    this.note.hidden = notes.length === 0;
    put(this.fault, texts(errors));
    this.fault.hidden = !isWrong;
    for (const input of this.control.inputs) {
      if (isWrong) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }

  changed() {
    const value = this.control.value();
    if (value instanceof Invalid) return this.showFaults([value]);
    this.showFaults([]);
    this.onchange(value);
  }

  clear() {
    this.onchange(undefined);
    this.control.inputs[0].focus();
  }
}

function controlOf(field, name, onchange, isReadOnly) {
  const common = { id: name, disabled: isReadOnly, onchange, autocomplete: "off", spellcheck: "false", autocapitalize: "off" };
  if (UNITS[field.kind]) return quantity(field, name, common);
  if (field.kind === "choice") return chooser(common, field.choices.map(([value, text]) => [String(value), text ? `${value}: ${text.split(/(?<=\.)\s/)[0]}` : String(value)]));
  if (field.kind === "yes-no") {
    const made = chooser(common, [["true", "yes"], ["false", "no"]]);
    const value = made.value;
    return { ...made, value: () => (value() === undefined ? undefined : value() === "true") };
  }
  if (field.kind === "integer" || field.kind === "number" || field.kind === "count") return number(field, common);
  if (field.kind === "list") return list(common);
  if (field.kind === "numbers") return numbers(field, common);
  if (field.kind === "map") return map(common);
  if (field.kind === "set") return set(field, common);
  if (field.kind === "text") return text(common);
  return other(field, common);
}

function chooser(common, options) {
  const first = h("option", { value: "" });
  const select = h("select", common, first, options.map(([value, label]) => h("option", { value, title: label }, label.length > 90 ? `${label.slice(0, 89)}…` : label)));
  return {
    element: select,
    inputs: [select],
    value: () => (select.value === "" ? undefined : select.value),
    show: (written, inherited) => {
      put(first, `default (${valueText(inherited)})`);
      select.value = written === undefined ? "" : String(written);
    },
  };
}

function number(field, common) {
  const isCount = field.kind === "count";
  const input = h("input", { ...common, inputmode: field.kind === "number" ? "decimal" : "numeric" });
  return {
    element: input,
    inputs: [input],
    value: () => {
      const text = input.value.trim();
      if (text === "") return undefined;
      if (isCount && text === "none") return text;
      return numberOf(text, field, isCount ? "; write a whole number, or none for no limit" : "");
    },
    show: (written, inherited) => {
      input.placeholder = valueText(inherited);
      input.value = written ?? "";
    },
  };
}

// The number in a text, or an `Invalid` with the error. `help` is appended to the error if the text is not a number.
function numberOf(text, { kind, min, max }, help = "") {
  const value = Number(text);
  if (Number.isNaN(value) || (kind !== "number" && !Number.isInteger(value))) return new Invalid(`not a ${kind === "number" ? "" : "whole "}number: ${text}${help}`);
  const hasMin = min !== undefined;
  // The schema of a number with a unit has 0 as minimum and maximum, which does not mean a range.
  const hasMax = max !== undefined && !(max <= min);
  if (hasMin && value < min) return new Invalid(`must be at least ${min}${hasMax ? ` and at most ${max}` : ""}`);
  if (hasMax && value > max) return new Invalid(`must be at most ${max}${hasMin ? ` and at least ${min}` : ""}`);
  return value;
}

// A field for a number and its unit. Values with several units, such as 1h30m, and "none" are written as text.
function quantity(field, name, common) {
  const units = UNITS[field.kind];
  const input = h("input", { ...common, inputmode: "decimal", "aria-label": "Number" });
  const unit = h("select", { disabled: common.disabled, "aria-label": "Unit", onchange: (event) => input.value.trim() !== "" && common.onchange(event) }, units.map(([value, label]) => h("option", { value }, label)), h("option", { value: "" }, "as written"));
  const apart = (value) => {
    const found = /^(\d+)\s*([A-Za-z]+)$/.exec(String(value ?? ""));
    return found && units.some(([known]) => known === found[2]) ? found.slice(1) : null;
  };
  unit.value = USUAL[field.kind];
  return {
    element: h("div.quantity", {}, input, unit),
    inputs: [input, unit],
    value: () => {
      const text = input.value.trim();
      if (text === "") return undefined;
      if (/^\d+$/.test(text) && text !== "0") return unit.value === "" ? new Invalid("choose a unit") : `${text}${unit.value}`;
      return text;
    },
    show: (written, inherited) => {
      const shown = apart(written ?? inherited);
      input.placeholder = valueText(inherited);
      if (written === undefined) {
        input.value = "";
        unit.value = shown ? shown[1] : USUAL[field.kind];
        if (shown) input.placeholder = shown[0];
      } else if (shown) {
        input.value = shown[0];
        unit.value = shown[1];
        const same = apart(inherited);
        if (same?.[1] === shown[1]) input.placeholder = same[0];
      } else {
        input.value = written;
        unit.value = "";
      }
    },
  };
}

function text(common) {
  const input = h("input", common);
  return {
    element: input,
    inputs: [input],
    value: () => (input.value.trim() === "" ? undefined : input.value),
    show: (written, inherited) => {
      input.placeholder = valueText(inherited);
      input.value = written ?? "";
    },
  };
}

function list(common) {
  return inLines(common, "One per line.", {
    read: (lines) => lines,
    show: (value) => [value ?? []].flat().map(valueText),
  });
}

function numbers(field, common) {
  return inLines(common, "One whole number per line.", {
    read: (lines) => {
      const found = lines.map((line) => numberOf(line, field));
      return found.find((one) => one instanceof Invalid) ?? found;
    },
    show: (value) => [value ?? []].flat().map(String),
  });
}

function map(common) {
  return inLines(common, "One per line: NAME = VALUE.", {
    read: (lines) => {
      const pairs = lines.map((line) => [line, line.indexOf("=")]);
      const wrong = pairs.find(([, at]) => at < 1);
      if (wrong) return new Invalid(`not NAME = VALUE: ${wrong[0]}`);
      return Object.fromEntries(pairs.map(([line, at]) => [line.slice(0, at).trim(), line.slice(at + 1).trim()]));
    },
    show: (value) => (typeof value === "object" ? Object.entries(value ?? {}) : []).map(([name, one]) => `${name} = ${one}`),
  });
}

// A field with one line for each part of its value: `read(lines)` makes the value, `show(value)` the lines.
function inLines(common, hint, { read, show }) {
  const area = h("textarea", { ...common, rows: 2, "data-lines": true });
  return {
    element: h("div.grow", {}, area, h("p.hint", {}, hint)),
    inputs: [area],
    value: () => {
      const lines = area.value.split("\n").map((line) => line.trim()).filter(Boolean);
      return lines.length === 0 ? undefined : read(lines);
    },
    show: (written, inherited) => {
      area.placeholder = show(inherited).join("\n");
      area.value = show(written).join("\n");
      area.rows = Math.min(8, Math.max(2, area.value.split("\n").length));
    },
  };
}

function set({ choices }, common) {
  const boxes = choices.map(([value]) => [value, h("input", { type: "checkbox", disabled: common.disabled, onchange: common.onchange, id: id("box") })]);
  return {
    element: h("div.boxes", {}, boxes.map(([value, box]) => h("div.check", {}, box, h("label", { for: box.id }, String(value))))),
    inputs: boxes.map(([, box]) => box),
    value: () => boxes.filter(([, box]) => box.checked).map(([value]) => value),
    show: (written, inherited) => {
      const shown = [written ?? inherited ?? []].flat();
      for (const [value, box] of boxes) box.checked = shown.includes(value);
    },
  };
}

// Values that are written in TOML only, such as lists of tables; and values of several types.
function other(field, common) {
  const types = [field.node.type].flat().filter(Boolean);
  const isPlain = types.length > 0 && types.every((type) => ["string", "integer", "number", "boolean", "null"].includes(type));
  const input = h("input", { ...common, disabled: common.disabled || !isPlain });
  return {
    element: input,
    inputs: [input],
    value: () => {
      const text = input.value.trim();
      if (text === "") return undefined;
      const value = Number(text);
      return !Number.isNaN(value) && types.some((type) => type === "integer" || type === "number") ? value : text;
    },
    show: (written, inherited) => {
      input.placeholder = isPlain ? valueText(inherited) : "written in the TOML only";
      input.value = written === undefined ? "" : valueText(written);
    },
  };
}
