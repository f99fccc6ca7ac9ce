// A new job: its name, a profile (one that ships, or a text), its seeds. What is entered is kept as a draft, so that neither a
// reload nor a daemon that starts again loses it.

import { get, send } from "../api.js";
import { h, id, put } from "../dom.js";
import { Editor } from "../editor.js";
import { choice, done, faultText, field } from "../notice.js";
import { place } from "../job.js";
import { session } from "../session.js";
import { checkProfile, readSchema } from "./profile.js";

const DRAFT = "opilio-draft";
const START = `# What is not written here has its default.
strategy = "snapshot"

[operator]
contact-url = "https://example.org/crawler"
`;

/** Opens the page. */
export async function open(page) {
  if (session.role === "viewer") {
    put(page.main, h("div.head", {}, h("h1", {}, "New job")), h("p.nothing", {}, "Only operators and administrators can create jobs; you are signed in as a viewer."));
    return;
  }
  const draft = read();
  const { profiles } = await get("profiles", {}, page.signal);
  const offered = profiles.map((profile) => [profile.name, profile.ships ? `${profile.name} (built in)` : profile.name]);
  const name = h("input", { required: true, value: draft.name ?? "", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  const from = choice({}, [...offered, ["", "own text"]], draft.profile !== undefined ? "" : (draft.from ?? offered[0][0]));
  const contact = h("input", { type: "url", value: draft.contact ?? "", autocomplete: "url", placeholder: "https://example.org/crawler" });
  const seeds = h("textarea", { rows: 7, value: draft.seeds ?? "", spellcheck: "false", placeholder: "https://example.org/" });
  const begin = h("input", { type: "checkbox", checked: draft.begin ?? true, id: id("begin") });
  const editor = new Editor({ label: "Profile (TOML)", value: draft.profile ?? START, rows: 18, check: checkProfile, onchange: () => keep() });
  const own = h("div.field", {}, h("span", { class: "label" }, "Profile (TOML)"), editor.element);
  const copy = h("button.button", { type: "button" }, "Edit a copy");
  const error = h("div.form-error", { role: "alert" });
  const submit = h("button.button.primary", { type: "submit" }, "Create job");
  readSchema(editor, page.signal);

  const keep = () => {
    const text = from.value === "" ? { profile: editor.value } : { from: from.value };
    write({ name: name.value, contact: contact.value, seeds: seeds.value, begin: begin.checked, ...text });
  };
  const turn = () => {
    own.hidden = from.value !== "";
    copy.hidden = from.value === "";
    keep();
  };
  copy.addEventListener("click", async () => {
    const answer = await get(`profiles/${encodeURIComponent(from.value)}`, {}, page.signal);
    editor.value = answer.toml;
    from.value = "";
    turn();
    editor.area.focus();
  });
  from.addEventListener("change", turn);

  const make = async () => {
    const body = { name: name.value.trim(), seeds: seeds.value.split("\n").map((line) => line.trim()).filter(Boolean), start: begin.checked };
    if (contact.value.trim()) body.contact_url = contact.value.trim();
    if (from.value === "") body.profile_toml = editor.value;
    else body.profile = from.value;
    const made = await send("POST", "jobs", body);
    write(null);
    done(`${made?.name ?? body.name} was created`);
    location.hash = place(made?.name ?? body.name);
  };
  const form = h(
    "form.card.narrow",
    {
      oninput: keep,
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        put(error);
        try {
          await make();
        } catch (problem) {
          if (from.value === "" && problem.faults?.some((fault) => fault.line)) editor.show(problem.faults);
          put(error, problem.message, problem.faults?.length > 0 && h("ul", {}, problem.faults.map((fault) => h("li", {}, faultText(fault)))));
        } finally {
          submit.disabled = false;
        }
      },
    },
    field("Name", name, "Letters, digits, dots, hyphens and underscores; also the name of the job's folder."),
    field("Profile", from),
    h("div.actions", {}, copy),
    own,
    field("Contact URL", contact, "Page that says who crawls and why; sent to every server. Required unless the profile has one."),
    field("Seeds", seeds, "One per line, as in a seeds file."),
    h("div.check", {}, begin, h("label", { for: begin.id }, "Start it at once")),
    error,
    h("div.actions", {}, submit),
  );
  put(page.main, h("div.head", {}, h("h1", {}, "New job")), form);
  turn();
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
    // Where storage is forbidden or full a draft lives as long as the page.
  }
}
