// Settings of a job: their current values and origins, and a form to change them while the job runs, with typed fields beside lines
// as in a profile.

import { job as path, send } from "../api.js";
import { h, id, put, setText } from "../dom.js";
import { count } from "../format.js";
import { badge, heading, link, read, search } from "../job.js";
import { done, failed, faultText, field } from "../notice.js";
import { Table } from "../table.js";
import { settingsOfJob, TypedFields } from "../typed-fields.js";

export const EFFECTS = { "at-once": "at once", "next-start": "at the next start", never: "never: frozen when the job was created" };

/** Opens the page. */
export async function open(page) {
  let settings = [];
  let pattern = page.query.search ?? "";
  const isExpert = h("input", { type: "checkbox", id: id("expert"), checked: page.query.expert === "yes" });
  const note = h("p.muted", { role: "status" });
  const list = new Sections((setting) => form.edit(setting));
  const show = () => {
    const needle = pattern.toLowerCase();
    const shown = settings.filter(
      (setting) =>
        (isExpert.checked || !setting.expert || setting.file) && (needle === "" || `${setting.key} ${setting.toml} ${setting.description}`.toLowerCase().includes(needle)),
    );
    list.show(shown, needle !== "");
    put(note, `${count(shown.length)} of ${count(settings.length)} settings`);
  };
  const load = async () => {
    ({ settings } = await read(page, "settings"));
    show();
  };
  const form = changeForm(page, load);
  isExpert.addEventListener("change", () => {
    page.remember({ expert: isExpert.checked ? "yes" : "" });
    show();
  });
  await load();
  put(
    page.main,
    heading(page, "Settings"),
    form.element,
    h(
      "div.toolbar",
      {},
      search("Search", pattern, (value) => {
        pattern = value;
        page.remember({ search: value });
        show();
      }),
      h("div.check", {}, isExpert, h("label", { for: isExpert.id }, "Include expert settings")),
    ),
    note,
    list.element,
  );
}

// Settings in folding sections, by the first part of their names. The first section is open and has the settings that the profile or
// a change sets. A search opens each section with a match; after the search the sections are folded as before.
class Sections {
  constructor(edit) {
    this.edit = edit;
    this.set = this.section("Set for this job", "All settings have their defaults.");
    this.set.element.open = true;
    this.named = new Map();
    this.nothing = h("p.nothing", { hidden: true }, "No matching settings.");
    this.isSearch = false;
    this.list = h("div");
    this.element = h("div", {}, this.list, this.nothing);
  }

  /** Replaces the settings that are shown. */
  show(settings, isSearch) {
    const groups = new Map();
    for (const setting of settings) {
      const [first, ...rest] = setting.key.split(".");
      const name = rest.length === 0 ? "General" : first;
      groups.set(name, [...(groups.get(name) ?? []), setting]);
    }
    for (const name of groups.keys()) {
      if (this.named.has(name)) continue;
      this.named.set(name, this.section(name, "No matching settings."));
    }
    const names = [...this.named.keys()].sort((one, other) => (other === "General") - (one === "General") || one.localeCompare(other));
    const elements = [this.set.element, ...names.map((name) => this.named.get(name).element)];
    // An element that moves loses its focus.
    if (elements.some((element, at) => element !== this.list.children[at])) put(this.list, elements);
    for (const [name, { element, fill }] of this.named) {
      const own = groups.get(name) ?? [];
      fill(own);
      element.hidden = own.length === 0;
      if (isSearch && !this.isSearch) element.dataset.before = element.open ? "open" : "";
      if (isSearch) element.open = own.length > 0;
      else if (this.isSearch) element.open = element.dataset.before === "open";
    }
    this.set.fill(settings.filter((setting) => setting.file));
    // In a search all settings are in the sections of their names.
    this.set.element.hidden = isSearch;
    this.nothing.hidden = settings.length > 0;
    this.isSearch = isSearch;
  }

  section(name, empty) {
    const table = new Table({
      caption: name,
      empty,
      key: (setting) => setting.key,
      columns: [
        { title: "Setting", isHead: true, isWide: true, cell: (setting) => [h("code", {}, setting.key), setting.description && h("div.hint", { title: setting.description }, setting.description.split(/(?<=\.)\s/)[0])] },
        { title: "Value", isWide: true, cell: (setting) => h("code", {}, setting.toml) },
        { title: "From", cell: (setting) => (setting.file ? `${setting.file}${setting.line ? `:${setting.line}` : ""}` : h("span.muted", {}, "default")) },
        { title: "A change takes effect", cell: (setting) => EFFECTS[setting.effect] ?? setting.effect },
        {
          title: "Actions",
          cell: (setting) =>
            setting.effect !== "never" && h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": `Change ${setting.key}`, onclick: () => this.edit(setting) }, "Change"),
        },
      ],
    });
    const numbers = h("span.muted");
    const element = h("details.card.section", {}, h("summary", {}, h("span.section-title", {}, name), " ", numbers), table.element);
    return {
      element,
      fill: (settings) => {
        table.show(settings);
        const set = settings.filter((setting) => setting.file).length;
        const isSetAll = set === settings.length;
        setText(numbers, `${count(settings.length)} ${settings.length === 1 ? "setting" : "settings"}${set > 0 && !isSetAll ? `, ${count(set)} set` : ""}`);
      },
    };
  }
}

// A change is checked like a profile: all errors are shown at once, and with any error nothing is changed.
function changeForm(page, after) {
  const lines = h("textarea", { rows: 3, required: true, spellcheck: "false", autocapitalize: "off", placeholder: 'politeness.min-delay = "5s"' });
  const reason = h("input", { maxlength: 1000, autocomplete: "off" });
  const answer = h("div", { role: "status" });
  const typed = new TypedFields(lines, { settings: settingsOfJob });
  const change = async (onlyCheck) => {
    const body = { set: lines.value.split("\n").map((line) => line.trim()).filter(Boolean), only_check: onlyCheck, reason: reason.value.trim() || undefined };
    put(answer);
    typed.showFaults([]);
    try {
      const result = await send("PATCH", path(page.job, "settings"), body);
      put(answer, changed(result, onlyCheck));
      if (onlyCheck) return;
      done("the settings were changed");
      lines.value = "";
      reason.value = "";
      typed.clear();
      await after();
    } catch (problem) {
      const faults = problem.faults?.length > 0 ? problem.faults : [{ problem: problem.message }];
      typed.showFaults(faults);
      put(answer, h("div.form-error", {}, "Nothing was changed:", h("ul", {}, faults.map((fault) => h("li", {}, faultText(fault))))));
    }
  };
  const element = h(
    "form.card",
    {
      "data-needs": "operator",
      onsubmit: (event) => {
        event.preventDefault();
        change(false);
      },
    },
    h("h2", {}, "Change settings"),
    typed.element,
    field("Settings, one per line as in a profile", lines),
    h("p.hint", {}, "The settings apply where no override sets them. For some URIs only: ", link(page.job, "overrides", {}, "add an override"), "."),
    field("Reason, for the history", reason),
    answer,
    h(
      "div.actions",
      {},
      h("button.button", { type: "button", onclick: () => lines.reportValidity() && change(true) }, "Check only"),
      h("button.button.primary", { type: "submit" }, "Change"),
    ),
  );
  return {
    element,
    edit(setting) {
      // A second line of a setting would be an error, and the first may have been edited.
      const isThere = typed.hasLine(setting.key);
      if (!isThere) lines.value = `${lines.value ? `${lines.value.trimEnd()}\n` : ""}${setting.key} = ${setting.toml}`;
      lines.focus();
      lines.scrollIntoView({ block: "center" });
      typed.add(setting.key, isThere ? undefined : setting.value).catch(failed);
    },
  };
}

/** Lists changed settings, and warnings about them. */
export function changed({ changed: list, notices }, onlyCheck) {
  return [
    h("p", {}, list.length === 0 ? "No setting changes." : onlyCheck ? "No errors. The settings would change:" : "Changed settings:"),
    h(
      "ul",
      {},
      list.map((one) => h("li", {}, h("code", {}, one.key), ": ", one.before && [h("code", {}, one.before), " → "], one.after ? h("code", {}, one.after) : "not set", ", ", EFFECTS[one.effect] ?? one.effect)),
    ),
    notices?.length > 0 && h("ul", {}, notices.map((notice) => h("li.warn-text", {}, badge(notice.level), " ", faultText(notice)))),
  ];
}
