// A new job: its name, profile and seeds, then the settings that most jobs change, and all other settings in a folded section.
// Input is kept as a draft, so that it survives a reload of the page and a restart of the daemon.

import { Answers } from "../answers.js";
import { get, profile as path, send } from "../api.js";
import { h, id, put } from "../dom.js";
import { Field, fieldsOf } from "../fields.js";
import { choice, done, failed, faultText, field } from "../notice.js";
import { place } from "../job.js";
import { ProfileEditor, readKnown } from "../profile-editor.js";
import { session } from "../session.js";
import { at, pointer } from "../settings-form.js";

const DRAFT = "opilio-draft";
const START = `# Settings that are not written here have their defaults.
strategy = "snapshot"

[operator]
contact-url = "https://example.org/crawler"
`;
/** Filters that decide which sites belong to the crawl. The form shows the filter of these that is in the stack as the scope. */
const SCOPES = [
  ["surt-scope", "below the seeds: the host or folder of each seed"],
  ["domain", "domains of the seeds, with their subdomains"],
  ["host", "hosts of the seeds"],
  ["path", "folders of the seeds"],
  ["broad", "all sites"],
];
/** The filter that excludes URIs. It is placed in the stack before the filter that accepts embeds. */
const EXCLUDED = "excluded";
const BEFORE = "prerequisite";

/** Opens the page. */
export async function open(page) {
  if (session.role === "viewer") {
    put(page.main, h("div.head", {}, h("h1", {}, "New job")), h("p.nothing", {}, "Only operators and administrators can create jobs; you are signed in as a viewer."));
    return;
  }
  const draft = page.query.profile ? { ...read(), from: page.query.profile, profile: undefined } : read();
  const [{ profiles }, { schema }] = await Promise.all([get("profiles", {}, page.signal), readKnown()]);
  const usable = profiles.filter((profile) => !profile.problem);
  const offered = usable.map((profile) => [profile.name, profile.ships ? `${profile.name} (built in)` : profile.name]);
  const isOffered = (name) => usable.some((profile) => profile.name === name);
  const name = h("input", { required: true, value: draft.name ?? "", pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]*", autocomplete: "off", spellcheck: "false", autocapitalize: "off" });
  const first = draft.from ?? (draft.profile === undefined ? usable[0].name : "");
  const from = choice({}, [...offered, ["", "own text"]], isOffered(first) ? first : "");
  const about = h("p.hint");
  const contact = h("input", { type: "url", value: draft.contact ?? "", autocomplete: "url", placeholder: "https://example.org/crawler" });
  const seeds = h("textarea", { rows: 5, value: draft.seeds ?? "", spellcheck: "false", placeholder: "https://example.org/" });
  const error = h("div.form-error", { role: "alert" });
  const submit = h("button.button.primary", { type: "submit" }, "Create job");
  const start = startField(draft, () => keep());
  // The text of the saved profile.
  let saved = START;
  const textOf = async (profile) => (profile === "" ? START : (await get(path(profile), {}, page.signal)).toml);
  saved = await textOf(from.value);
  const common = commonFields(schema, (changes) => editor.apply(changes));
  const editor = new ProfileEditor({
    value: draft.profile ?? saved,
    profile: from.value || undefined,
    onchange: () => keep(),
    onshow: (form) => common.show(form),
    onfaults: (faults) => common.showFaults(faults),
  });
  const all = h("details.more", { open: from.value === "" }, h("summary", {}, h("span.section-title", {}, "All settings")), editor.element);
  const restore = h("button.button", { type: "button", hidden: true, onclick: () => (editor.value = saved) }, "Discard changes of the profile");

  const keep = () => {
    const isChanged = editor.value !== saved;
    restore.hidden = !isChanged || from.value === "";
    put(about, from.value !== "" && isChanged ? "Changed for this job; the named profile stays as it is." : (usable.find((profile) => profile.name === from.value)?.description ?? ""));
    write({ name: name.value, contact: contact.value, seeds: seeds.value, from: from.value, profile: isChanged || from.value === "" ? editor.value : undefined, ...start.draft() });
  };
  const texts = new Answers(({ profile, text }) => {
    const own = editor.value;
    const isChanged = own !== saved;
    saved = text;
    editor.profile = profile || undefined;
    // A changed text is kept.
    editor.value = profile === "" && isChanged ? own : saved;
    all.open = profile === "";
    editor.editor.validate();
    keep();
  });
  let chosen = Promise.resolve();
  from.addEventListener("change", () => {
    const profile = from.value;
    chosen = texts.ask(textOf(profile).then((text) => ({ profile, text })));
    chosen.catch(failed);
  });

  const make = async () => {
    // The editor may still have the text of the profile that was chosen before.
    await chosen;
    await editor.settled();
    const body = { name: name.value.trim(), seeds: seeds.value.split("\n").map((line) => line.trim()).filter(Boolean), ...start.body() };
    if (contact.value.trim()) body.contact_url = contact.value.trim();
    if (from.value !== "") body.profile = from.value;
    if (from.value === "" || editor.value !== saved) body.profile_toml = editor.value;
    const made = await send("POST", "jobs", body);
    write(null);
    const notes = (made?.notices ?? []).map((note) => h("li", {}, faultText(note)));
    done([`${made?.name ?? body.name} was created`, notes.length > 0 && h("ul", {}, notes)]);
    location.hash = place(made?.name ?? body.name);
  };
  const form = h(
    "form.parts",
    {
      oninput: () => keep(),
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        // The daemon may have to compile plugins first.
        submit.textContent = "Checking the profile and its plugins…";
        put(error);
        try {
          await make();
        } catch (problem) {
          if (problem.faults?.some((fault) => fault.line)) {
            editor.editor.show(problem.faults);
            editor.form?.showFaults(problem.faults);
            common.showFaults(problem.faults);
          }
          put(error, problem.message, problem.faults?.length > 0 && h("ul", {}, problem.faults.map((fault) => h("li", {}, faultText(fault)))));
        } finally {
          submit.disabled = false;
          submit.textContent = "Create job";
        }
      },
    },
    h(
      "div.card.narrow",
      {},
      field("Name", name, "Letters, digits, dots, hyphens and underscores; also the name of the job's folder."),
      field("Profile", from),
      about,
      h("div.actions", {}, restore),
      field("Contact URL", contact, "Page that says who crawls and why; sent to every server. Required unless the profile has one."),
      field("Seeds", seeds, "One per line, as in a seeds file."),
    ),
    h("section.card.narrow", { "aria-labelledby": "common" }, h("h2", { id: "common" }, "Scope, limits and schedule"), common.element, start.element),
    all,
    h("div.card.narrow.last", {}, error, h("div.actions", {}, submit)),
  );
  put(page.main, h("div.head", {}, h("h1", {}, "New job")), form);
  keep();
}

// The settings that most jobs change, with plain labels.
function commonFields(schema, apply) {
  // Copied from the schema of the plugin, so that the schema need not be loaded.
  const depth = { path: ["plugins", "hops", "settings", "max"], name: "max", kind: "integer", min: 0, preset: 20, description: "" };
  const all = [...fieldsOf(schema, schema), depth];
  const make = (place, label, hint, before) => {
    const found = all.find((one) => one.path.join("/") === place);
    return new Field(found, { label, hint, onchange: (value) => apply((form) => [...(value === undefined || !before ? [] : before(form)), { path: found.path, value: value ?? null }]) });
  };
  // Undefined if errors of the profile make the stack unknown: a guess could lose filters that the profile names.
  const stack = ({ written, stacks }) => (Array.isArray(written.stacks?.scope) ? written.stacks.scope : stacks.scope);
  const scope = choice({ id: id("scope") }, SCOPES, "");
  const unknown = h("option", { value: "" }, "as in the profile");
  const unsettled = h("p.form-error", { hidden: true }, "Scope and exclusions cannot be changed here: the filters of the scope are not known. Correct the errors under “All settings” first.");
  scope.prepend(unknown);
  scope.addEventListener("change", () => {
    const names = SCOPES.map(([name]) => name);
    const chosen = scope.value;
    const changed = (filters) => [{ path: ["stacks", "scope"], value: filters.map((name) => (names.includes(name) ? chosen : name)) }];
    if (chosen !== "") apply((form) => (stack(form) ? changed(stack(form)) : []));
  });
  const hopsTable = (form) => (form.written.plugins?.hops?.component ?? form.inherited.plugins?.hops?.component ? [] : [{ path: ["plugins", "hops", "component"], value: "builtin:hops" }]);
  const excluded = new Field(
    { path: ["plugins", EXCLUDED, "settings", "patterns"], name: "patterns", kind: "list", description: "" },
    {
      label: "Exclusions",
      hint: "URIs that the crawl leaves out: regular expressions, such as \\.pdf$ or /calendar/.",
      onchange: (value) => apply((form) => {
        const others = stack(form)?.filter((name) => name !== EXCLUDED);
        if (!others) return [];
        if (value === undefined) return [{ path: ["plugins", EXCLUDED], value: null }, { path: ["stacks", "scope"], value: others }];
        const to = others.indexOf(BEFORE);
        return [
          { path: ["plugins", EXCLUDED, "component"], value: "builtin:regex-list" },
          { path: ["plugins", EXCLUDED, "settings", "then"], value: "reject" },
          { path: ["plugins", EXCLUDED, "settings", "patterns"], value },
          { path: ["stacks", "scope"], value: others.toSpliced(to < 0 ? others.length : to, 0, EXCLUDED) },
        ];
      }),
    },
  );
  const made = [
    make("plugins/hops/settings/max", "Depth", "Most hops from a seed; 0 fetches the seeds only.", hopsTable),
    make("limits/documents", "Page limit", "Number of documents after which the crawl ends; none for no limit."),
    make("limits/time", "Time limit", "Time after which the crawl ends; none for no limit."),
    make("limits/bytes", "Data limit", "Bytes received over the network after which the crawl ends; none for no limit."),
    make("politeness/min-delay", "Delay", "Shortest time between two fetches from a server."),
    excluded,
    make("strategy", "Visits", "Whether documents are fetched once or repeatedly."),
    make("revisit/fixed-wait", "Time between visits", "For visits at fixed intervals."),
  ];
  const fixed = made.at(-1);
  return {
    element: h("div", {}, h("div.setting", {}, h("label", { for: scope.id }, "Scope"), h("div.setting-value", {}, scope), h("p.hint", {}, "The sites that belong to the crawl."), unsettled), made.map((one) => one.element)),
    show: (answer) => {
      const filters = stack(answer);
      unsettled.hidden = Boolean(filters);
      for (const input of excluded.control.inputs) input.disabled = !filters;
      const names = SCOPES.map(([name]) => name).filter((name) => filters?.includes(name));
      scope.value = names.length === 1 ? names[0] : "";
      unknown.hidden = names.length === 1;
      scope.disabled = names.length !== 1;
      for (const one of made) one.show(at(answer.written, one.field.path), at(answer.inherited, one.field.path) ?? one.field.preset);
      fixed.element.hidden = (answer.written.strategy ?? answer.inherited.strategy) !== "fixed";
    },
    showFaults: (faults) => {
      const errors = faults.filter((fault) => fault.level !== "info");
      for (const one of made) {
        const here = pointer(one.field.path);
        one.showFaults(errors.filter((fault) => fault.setting === here || fault.setting?.startsWith(`${here}/`)));
      }
    },
  };
}

// The field for the time at which the job starts.
function startField(draft, keep) {
  const options = [["now", "at once"], ["at", "at a set time"], ["later", "later, by hand"]];
  const when = choice({}, options, draft.start ?? (draft.begin === false ? "later" : "now"));
  const time = h("input", { type: "datetime-local", value: draft.time ?? "" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const timeField = field("Time of the start", time, `In your time zone, ${zone}.`);
  const turn = () => {
    timeField.hidden = when.value !== "at";
    time.required = when.value === "at";
    keep();
  };
  when.addEventListener("change", turn);
  timeField.hidden = when.value !== "at";
  time.required = when.value === "at";
  return {
    element: h("div.start", {}, field("Start", when), timeField),
    draft: () => ({ start: when.value, time: time.value }),
    body: () => ({ start: when.value !== "later", start_at: when.value === "at" ? new Date(time.value).toISOString() : undefined }),
  };
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
