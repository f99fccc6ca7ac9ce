// A named profile: its settings as a form and as TOML, and its versions. Also the page of a new profile.

import { Answers } from "../answers.js";
import { get, profile as path, send } from "../api.js";
import { diffView } from "../diff.js";
import { h, put } from "../dom.js";
import { person, when } from "../format.js";
import { badge } from "../job.js";
import { done, failed, faultText, field } from "../notice.js";
import { ProfileEditor } from "../profile-editor.js";
import { session } from "../session.js";
import { Table } from "../table.js";
import { askToCopy, askToDelete, comparePlace, profilePlace } from "./profiles.js";

const DRAFT = "opilio-profile-draft";
const START = `# Settings that are not written here come from the profile that this one extends.
extends = "snapshot"
`;
const CHANGES = { save: "saved", copy: "copied", file: "file changed by other means", delete: "deleted" };

/** Opens the page of a profile. */
export async function open(page) {
  const name = page.profile;
  let stored = await get(path(name), {}, page.signal);
  const { versions } = await get(path(name, "versions"), {}, page.signal);
  const isReadOnly = stored.ships || session.role === "viewer";
  const editor = new ProfileEditor({ value: stored.toml, profile: name, isReadOnly, onchange: () => showState() });
  const reason = h("input", { maxlength: 1000, autocomplete: "off" });
  const save = h("button.button.primary", { type: "submit", disabled: true }, "Save");
  const revert = h("button.button", { type: "button", hidden: true, onclick: () => (editor.value = stored.toml) }, "Discard changes");
  const state = h("span.muted", { role: "status" });
  const error = h("div.form-error", { role: "alert" });
  const showState = () => {
    const isChanged = editor.value !== stored.toml;
    save.disabled = !isChanged;
    revert.hidden = !isChanged;
    put(state, isChanged ? "Not saved yet." : "");
  };
  const form = h(
    "form.card",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        save.disabled = true;
        put(error);
        try {
          await editor.settled();
          const saved = await send("PUT", path(name), { toml: editor.value, reason: reason.value.trim() || undefined }, {}, { "if-match": `"${stored.tag}"` });
          done(`version ${saved.version} of ${name} was saved`);
          page.reload();
        } catch (problem) {
          save.disabled = false;
          showProblem(error, problem, editor);
          if (problem.status === 412) error.append(" ", h("a", { href: profilePlace(name), target: "_blank", rel: "noopener" }, "Show the newest version"), ".");
        }
      },
    },
    field("Reason, for the history", reason),
    error,
    h("div.actions", {}, save, revert, state),
  );
  const difference = h("div", { role: "status" });
  put(
    page.main,
    h("p.crumbs", {}, h("a", { href: "#/profiles" }, "Profiles")),
    h(
      "div.head",
      {},
      h("h1", {}, name),
      h(
        "div.actions",
        {},
        stored.ships ? badge("shipped") : h("span.badge", {}, `version ${stored.version}`),
        h("a.button.primary", { href: `#/new?profile=${encodeURIComponent(name)}`, "data-needs": "operator" }, "New job"),
        h("button.button", { type: "button", "data-needs": "operator", onclick: () => askToCopy(name) }, "Copy"),
        h("a.button", { href: comparePlace({ profile: name, with: name }) }, "Compare"),
        !stored.ships && h("button.button.danger", { type: "button", "data-needs": "admin", onclick: () => askToDelete(name, () => (location.hash = "#/profiles"), stored.tag) }, "Delete"),
      ),
    ),
    stored.ships && h("p.muted", {}, "This profile is shipped with Opilio and cannot be changed. Copy it, or extend it in a profile of your own."),
    editor.element,
    !isReadOnly && form,
    !stored.ships && h("section", {}, h("h2", {}, "Versions"), versionTable(name, versions, stored, { editor, isReadOnly, difference }).element, difference),
  );
  showState();
  if (!isReadOnly) editor.editor.validate();
}

function versionTable(name, versions, stored, { editor, isReadOnly, difference }) {
  const newest = stored.version;
  const differences = new Answers((content) => {
    put(difference, content);
    difference.scrollIntoView({ block: "nearest" });
  });
  const shown = ({ from, to, diff }) => [h("h3", {}, `From ${from} to ${to}`), diffView(diff, `Difference from ${from} to ${to}`, "The texts are equal.")];
  const show = (number, before) =>
    differences.ask(get(path(name, "compare"), { version: before, with_version: number }).then(shown, (problem) => h("p.form-error", {}, problem.message)));
  const texts = new Answers(({ toml }) => {
    editor.value = toml;
    editor.element.scrollIntoView({ block: "start" });
    editor.editor.area.focus();
  });
  const take = (number) => texts.ask(get(path(name, "versions", number))).catch(failed);
  const table = new Table({
    caption: "Versions",
    key: (version) => version.number,
    columns: [
      { title: "Version", isHead: true, cell: (version) => [String(version.number), version.number === newest && [" ", h("span.badge", {}, "newest")]] },
      { title: "Time", cell: (version) => when(version.at) },
      { title: "By", cell: (version) => (version.by ? person(version.by) : h("span.muted", {}, "unknown")) },
      { title: "Change", isWide: true, cell: (version) => [CHANGES[version.change], version.copied_from && ` from ${version.copied_from}`, version.reason && h("div.hint", {}, version.reason)] },
      {
        title: "Actions",
        cell: (version) => {
          if (version.change === "delete") return "";
          const before = versions.find((other) => other.number < version.number && other.change !== "delete");
          return h(
            "div.actions",
            {},
            before && h("button.button.small", { type: "button", "aria-label": `Changes of version ${version.number}`, onclick: () => show(version.number, before.number) }, "Changes"),
            version.number !== newest && h("button.button.small", { type: "button", "aria-label": `To newest: version ${version.number}`, onclick: () => show(newest, version.number) }, "To newest"),
            version.number !== newest && !isReadOnly && h("button.button.small", { type: "button", "aria-label": `Restore …: version ${version.number}`, onclick: () => take(version.number) }, "Restore …"),
            h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": `Copy version ${version.number}`, onclick: () => askToCopy(name, version.number) }, "Copy"),
          );
        },
      },
    ],
  });
  table.show(versions);
  return table;
}

/** The page of a new profile. */
export const create = {
  async open(page) {
    if (session.role === "viewer") {
      put(page.main, h("div.head", {}, h("h1", {}, "New profile")), h("p.nothing", {}, "Only operators and administrators can create profiles; you are signed in as a viewer."));
      return;
    }
    const draft = read();
    const name = h("input", { required: true, value: draft.name ?? "", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", autocomplete: "off", spellcheck: "false", autocapitalize: "off", oninput: () => keep() });
    const reason = h("input", { maxlength: 1000, autocomplete: "off" });
    const editor = new ProfileEditor({ value: draft.toml ?? START, onchange: () => keep() });
    const error = h("div.form-error", { role: "alert" });
    const submit = h("button.button.primary", { type: "submit" }, "Create profile");
    const keep = () => write({ name: name.value, toml: editor.value });
    const form = h(
      "form.card",
      {
        onsubmit: async (event) => {
          event.preventDefault();
          submit.disabled = true;
          put(error);
          try {
            await editor.settled();
            const made = await send("POST", "profiles", { name: name.value.trim(), toml: editor.value, reason: reason.value.trim() || undefined });
            write(null);
            done(`${made.name} was created`);
            location.hash = profilePlace(made.name);
          } catch (problem) {
            showProblem(error, problem, editor);
          } finally {
            submit.disabled = false;
          }
        },
      },
      field("Name", name, "Letters, digits, dots, hyphens and underscores."),
      field("Reason, for the history", reason),
      error,
      h("div.actions", {}, submit),
    );
    put(page.main, h("p.crumbs", {}, h("a", { href: "#/profiles" }, "Profiles")), h("div.head", {}, h("h1", {}, "New profile")), editor.element, form);
    editor.editor.validate();
  },
};

function showProblem(error, problem, editor) {
  if (problem.faults?.some((fault) => fault.line)) editor.editor.show(problem.faults);
  put(error, problem.message, problem.faults?.length > 0 && h("ul", {}, problem.faults.map((fault) => h("li", {}, faultText(fault)))));
}

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT)) ?? {};
  } catch {
    return {};
  }
}

function write(draft) {
  try {
    if (draft) sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    else sessionStorage.removeItem(DRAFT);
  } catch {
    // If storage is forbidden or full, the draft is lost with the page.
  }
}
