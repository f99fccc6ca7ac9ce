// Overrides of a job: those of its profile, and live ones, which can be added, changed, moved and removed while it runs. Before a
// change is made, the page shows the URIs that it affects.

import { job as path, send } from "../api.js";
import { append, h, icon, put } from "../dom.js";
import { count, person, utc, when } from "../format.js";
import { heading, read, uriLink } from "../job.js";
import { ask, failed, faultText, field } from "../notice.js";
import { Table } from "../table.js";
import { settingChooser, settingsOfOverride, TypedFields } from "../typed-fields.js";
import { changed, EFFECTS } from "./settings.js";

/** Conditions: name, label, placeholder, and whether several values are allowed. */
const CONDITIONS = [
  ["surt", "SURT prefixes", "http://(org,example,www,)/news/", true],
  ["host", "Hosts", "www.example.org", true],
  ["domain", "Domains", "example.org", true],
  ["port", "Ports", "8080", true],
  ["queue", "Queues", "org,example,www,", true],
  ["regex", "Regular expression", "\\.pdf$", false],
  ["media-type", "Media types", "text/html image/*", true],
  ["source", "Found from seeds", "https://example.org/", true],
  ["time", "Time of day", "22:00-06:00 Europe/Copenhagen", false],
];

/** Opens the page. */
export async function open(page) {
  let overrides = [];
  const live = () => overrides.filter((one) => one.id);
  const change = (method, rest, body, query) => (onlyCheck, reason) => {
    const common = { reason: reason || undefined, only_check: onlyCheck };
    const at = path(page.job, "overrides", ...rest);
    return body ? send(method, at, { ...body, ...common }) : send(method, at, undefined, { ...query, ...common });
  };
  const move = (one, by) => {
    const order = live();
    const to = order.findIndex((other) => other.id === one.id) + by;
    // To move down by one, an override goes before the one after the next. Undefined means the end.
    const before = order[by > 0 ? to + 1 : to]?.id;
    const after = async () => {
      await load();
      // The row has new buttons, so the focus is set again.
      const [same, other] = by > 0 ? ["down", "up"] : ["up", "down"];
      const place = (word) => table.element.querySelector(`[aria-label="Move ${word} override ${one.id}"]:enabled`);
      requestAnimationFrame(() => (place(same) ?? place(other))?.focus());
    };
    propose(page, `Move override ${one.id}?`, "Move", change("POST", [one.id, "move"], { before }), after).catch(failed);
  };
  const button = (one, glyph, label, act, isDisabled) =>
    h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": `${label} override ${one.id}`, title: label, disabled: isDisabled, onclick: act }, glyph ? icon(glyph) : label);
  const table = new Table({
    caption: "Overrides",
    empty: "No overrides.",
    key: (one) => one.id ?? `${one.file}:${one.line}`,
    columns: [
      { title: "Override", isHead: true, cell: (one) => (one.id ? String(one.id) : h("span.muted", {}, "profile")) },
      { title: "Matches", isWide: true, cell: (one) => conditionList(one.matching) },
      { title: "Settings", isWide: true, cell: (one) => one.settings.map((setting) => h("div", { title: EFFECTS[setting.effect] }, h("code", {}, `${setting.key} = ${setting.toml}`))) },
      { title: "Origin", cell: (one) => (one.id ? [person(one.by), " ", when(one.at, { isShort: true }), one.reason && h("div.hint", {}, one.reason)] : `${one.file}:${one.line}`) },
      {
        title: "Actions",
        cell: (one) => {
          if (!one.id) return h("span.muted", {}, "fixed");
          const order = live();
          return h(
            "div.actions",
            {},
            button(one, null, "Edit", () => form.edit(one)),
            button(one, "up", "Move up", () => move(one, -1), order[0].id === one.id),
            button(one, "down", "Move down", () => move(one, 1), order.at(-1).id === one.id),
            button(one, null, "Remove", () => propose(page, `Remove override ${one.id}?`, "Remove", change("DELETE", [one.id]), load).catch(failed)),
          );
        },
      },
    ],
  });
  const load = async () => {
    ({ overrides } = await read(page, "overrides"));
    // The buttons of a row depend on its place, too.
    table.show(overrides.map((one, place) => ({ ...one, place, of: overrides.length })));
  };
  const form = overrideForm(page, change, load);
  await load();
  put(
    page.main,
    heading(page, "Overrides"),
    h("p.muted", {}, "Overrides apply in this order. If several match, the last one wins, for each setting separately."),
    table.element,
    form.element,
  );
}

function conditionList(matching) {
  return Object.entries(matching).map(([name, value]) => h("div", {}, `${name} `, h("code", {}, [value].flat().join(", "))));
}

// The form for a new override, or for an existing one.
function overrideForm(page, change, after) {
  let edited = null;
  const title = h("h2", {}, "Add an override");
  const lines = h("textarea", { rows: 3, required: true, spellcheck: "false", autocapitalize: "off", placeholder: 'politeness.min-delay = "5s"' });
  const inputs = CONDITIONS.map(([name, label, placeholder]) => [name, label, h("input", { spellcheck: "false", autocapitalize: "off", placeholder })]);
  const typed = new TypedFields(lines, { settings: settingsOfOverride, isRemovable: true });
  const answer = h("div", { role: "status" });
  const cancel = h("button.button", { type: "button", hidden: true, onclick: () => clear() }, "Cancel");
  const clear = () => {
    edited = null;
    title.textContent = "Add an override";
    cancel.hidden = true;
    lines.value = "";
    typed.clear();
    for (const [, , input] of inputs) input.value = "";
    put(answer);
  };
  const matching = () => {
    const entries = inputs.map(([name, , input], n) => {
      const text = input.value.trim();
      const parts = text.split(/\s+/).filter(Boolean);
      const value = CONDITIONS[n][3] ? (name === "port" ? parts.map(Number) : parts) : text;
      return [name, value];
    });
    return Object.fromEntries(entries.filter(([, value]) => value.length > 0));
  };
  const save = async () => {
    put(answer);
    typed.showFaults([]);
    const set = lines.value.split("\n").filter((line) => line.trim());
    const kept = new Set(set.map((line) => line.split("=")[0].trim()));
    const unset = edited?.settings.map((setting) => setting.key).filter((key) => !kept.has(key));
    const act = edited ? change("PATCH", [edited.id], { set, unset, matching: matching() }) : change("POST", [], { set, matching: matching() });
    try {
      await propose(page, edited ? `Change override ${edited.id}?` : "Add the override?", "Save", act, async () => {
        clear();
        await after();
      });
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
        save();
      },
    },
    title,
    settingChooser(typed),
    typed.element,
    field("Settings, one per line as in a profile", lines),
    h("p.hint", {}, "Conditions: an override applies if all given conditions match. Separate several values with spaces; one of them must match."),
    h("div.toolbar", {}, inputs.map(([, label, input]) => field(label, input))),
    answer,
    h("div.actions", {}, h("button.button.primary", { type: "submit" }, "Preview …"), cancel),
  );
  return {
    element,
    edit(one) {
      clear();
      edited = one;
      title.textContent = `Edit override ${one.id}`;
      cancel.hidden = false;
      lines.value = one.settings.map((setting) => `${setting.key} = ${setting.toml}`).join("\n");
      Promise.all(one.settings.map(({ key }) => typed.add(key))).catch(failed);
      for (const [name, , input] of inputs) input.value = [one.matching[name] ?? ""].flat().join(" ");
      lines.focus();
      element.scrollIntoView({ block: "nearest" });
    },
  };
}

// Shows the effect of a change, and makes the change if the user confirms it.
async function propose(page, title, yes, act, after) {
  const preview = await act(true);
  const reason = h("input", { maxlength: 1000, autocomplete: "off" });
  ask({
    title,
    fields: [h("div", {}, preview.changed.length > 0 && changed(preview, true), touched(page, preview.touched)), field("Reason, for the history", reason)],
    yes,
    act: async () => {
      const result = await act(false, reason.value.trim());
      await after();
      return `change ${result.number} was made`;
    },
  });
}

function touched(page, { examined, stopped, matched, queued, changed: number, at, examples }) {
  return append(h("div.touched"), [
    h("p", {}, `Matches ${count(matched)} known URIs, ${count(queued)} of them queued. Settings change for ${count(number)} of them (at ${utc(at)}).`),
    stopped && h("p.warn-text", {}, `Stopped after ${count(examined)} URIs; there may be more.`),
    h(
      "ul",
      {},
      examples.map((one) =>
        h(
          "li",
          {},
          uriLink(page.job, one.uri),
          one.changes.length === 0 && ": no setting changes",
          h("ul", {}, one.changes.map((value) => h("li", {}, h("code", {}, value.key), ": ", h("code", {}, value.before ?? "–"), " → ", h("code", {}, value.after ?? "–")))),
        ),
      ),
    ),
  ]);
}
