// The settings of a profile as a form, made from its JSON Schema: sections that fold, fields, stacks of plugins.

import { h, id, put } from "./dom.js";
import { changesOf, Field, fieldsOf } from "./fields.js";
import { PluginForm } from "./plugin-form.js";
import { properties, resolve } from "./schema.js";

/** The order of the sections; sections that are not listed follow. */
const ORDER = ["operator", "limits", "politeness", "quotas", "robots", "fetch", "revisit", "archive", "frontier", "queue", "uri", "group", "retry", "dns", "cookies", "browser", "logs", "alerts", "checkpoint"];
/** Settings without fields here: plugins have their own form; lists of tables, and tables named by users, are written in TOML. */
const APART = ["plugins", "stacks"];
const IN_TEXT = ["override", "tables", "credentials", "logins", "webhooks", "streams"];
const GENERAL = ["name", "description", "extends", "strategy", "seeds", "seeds-file", "workers", "user-agent"];

/** The value at a path. */
export function at(value, path) {
  return path.reduce((place, name) => place?.[name], value);
}

/** The JSON Pointer of a path. */
export function pointer(path) {
  return path.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** The form; `onchange(changes)` gets the changes to be written into the text. */
export class SettingsForm {
  constructor({ schema, plugins, isReadOnly, onchange }) {
    this.fields = new Map();
    const isExpert = h("input", { type: "checkbox", id: id("expert") });
    const search = h("input", { type: "search", "data-search": true, id: id("find"), autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
    this.searchInput = () => ({ text: search.value.trim().toLowerCase(), isExpert: isExpert.checked });
    this.sections = this.sectionsOf(schema).map((section) => this.section(section, isReadOnly, onchange));
    this.plugins = new PluginForm({ schema, plugins, isReadOnly, onchange, fields: this.fields });
    this.unknown = h("p.bad-text", { hidden: true });
    const nothing = h("p.nothing", { hidden: true }, "No matching settings.");
    this.group = id("sections");
    const applySearch = () => {
      this.fold();
      let count = this.plugins.applySearch(this.searchInput()) ? 1 : 0;
      for (const section of this.sections) count += section.applySearch(this.searchInput());
      nothing.hidden = count > 0;
    };
    this.applySearch = applySearch;
    search.addEventListener("input", applySearch);
    isExpert.addEventListener("change", applySearch);
    this.element = h(
      "div",
      {},
      h("h2", {}, "Form"),
      h("div.toolbar", {}, h("div.field.grow", {}, h("label", { for: search.id }, "Find a setting"), search), h("div.check", {}, isExpert, h("label", { for: isExpert.id }, "Include expert settings"))),
      this.unknown,
      this.sections[0].element,
      this.plugins.element,
      this.sections.slice(1).map((section) => section.element),
      h("p.hint", {}, `Written only in the TOML: ${IN_TEXT.join(", ")}.`),
      nothing,
    );
    applySearch();
  }

  get folds() {
    return [this.sections[0].element, this.plugins.element, ...this.sections.slice(1).map((section) => section.element)];
  }

  /** One section is open at a time, since all together are forty screens high; a search opens each that has a match. */
  fold() {
    const isSearch = this.searchInput().text !== "";
    if (isSearch === this.isSearch) return;
    if (isSearch) this.before = this.folds.find((fold) => fold.open);
    for (const fold of this.folds) {
      fold.name = isSearch ? "" : this.group;
      if (!isSearch && this.isSearch !== undefined) fold.open = fold === this.before;
    }
    this.isSearch = isSearch;
  }

  sectionsOf(schema) {
    const top = properties(schema, schema);
    const tables = Object.keys(top).filter((name) => !GENERAL.includes(name) && !APART.includes(name) && !IN_TEXT.includes(name));
    const place = (name) => (ORDER.includes(name) ? ORDER.indexOf(name) : ORDER.length);
    tables.sort((one, other) => place(one) - place(other) || one.localeCompare(other));
    const general = Object.fromEntries(GENERAL.filter((name) => top[name]).map((name) => [name, top[name]]));
    const extended = { ...general.extends, anyOf: undefined, $ref: undefined, type: "array", items: { type: "string" } };
    return [
      { title: "General", fields: fieldsOf(schema, { properties: { ...general, extends: extended } }) },
      ...tables.map((name) => ({ title: name, description: top[name].description ?? resolve(schema, top[name]).description, fields: fieldsOf(schema, top[name], [name]) })),
    ];
  }

  section({ title, description, fields }, isReadOnly, onchange) {
    const made = fields.map((field) => {
      const one = new Field(field, { isReadOnly, onchange: (value) => onchange(field.kind === "map" ? (form) => changesOf(field, at(form.written, field.path), value) : changesOf(field, undefined, value)) });
      this.fields.set(pointer(field.path), one);
      return one;
    });
    const written = h("span.muted");
    const wrong = h("span.bad-text");
    const element = h(
      "details.card.section",
      { open: title === "General" },
      h("summary", {}, h("span.section-title", {}, title), " ", written, " ", wrong),
      description && h("p.hint", {}, description.replaceAll("`", "").split(/(?<=\.)\s/)[0]),
      made.map((one) => one.element),
    );
    return {
      element,
      made,
      show: (form) => {
        let count = 0;
        for (const one of made) {
          const { path } = one.field;
          const value = at(form.written, path);
          // One profile is a list of one.
          const shown = path[0] === "extends" && typeof value === "string" ? [value] : value;
          one.show(shown, at(form.inherited, path) ?? one.field.preset);
          if (value !== undefined) count += 1;
        }
        put(written, count > 0 && `${count} set here`);
      },
      markFaults: () => {
        const count = made.filter((one) => !one.fault.hidden).length;
        put(wrong, count > 0 && `${count} ${count === 1 ? "error" : "errors"}`);
        return count > 0;
      },
      applySearch: ({ text, isExpert }) => {
        let count = 0;
        for (const one of made) {
          const { path, description, isExpert: isForExperts } = one.field;
          const fits = text === "" ? isExpert || !isForExperts || one.isWritten : `${path.join(".")} ${description}`.toLowerCase().includes(text);
          one.element.hidden = !fits;
          if (fits) count += 1;
        }
        element.hidden = count === 0;
        if (text !== "") element.open = count > 0;
        return count;
      },
    };
  }

  /** Shows a profile as the daemon has parsed it. */
  show(form) {
    for (const section of this.sections) section.show(form);
    this.plugins.show(form);
    this.applySearch();
  }

  /** Shows errors at their fields. */
  showFaults(faults) {
    const errors = faults.filter((fault) => fault.level !== "info");
    for (const [place, field] of this.fields) field.showFaults(faults.filter((fault) => fault.setting === place || fault.setting?.startsWith(`${place}/`)));
    const isShown = (fault) => [...this.fields.keys()].some((place) => fault.setting === place || fault.setting?.startsWith(`${place}/`));
    const rest = errors.filter((fault) => !isShown(fault));
    put(this.unknown, `${rest.length === 1 ? "An error is" : `${rest.length} errors are`} shown beside the TOML only.`);
    this.unknown.hidden = rest.length === 0;
    const faulty = this.sections.filter((section) => section.markFaults()).map((section) => section.element);
    const isInUse = this.folds.some((fold) => fold.open && fold.contains(document.activeElement));
    if (faulty.length > 0 && !isInUse && !faulty.some((fold) => fold.open)) faulty[0].open = true;
  }
}
