// Notices of success, error messages, and confirmation dialogs. Screen readers read notices. Errors stay until they are closed.

import { append, h, icon, id, put } from "./dom.js";

const STAY = 6000;

/** Shows that an action succeeded. */
export function done(text) {
  show("done", text, STAY);
}

/** Shows an error with all of its details. */
export function failed(problem, what) {
  if (problem.name === "AbortError") return;
  const faults = (problem.faults ?? []).map((fault) => h("li", {}, faultText(fault)));
  show(
    "failed",
    [what ? `${what}: ` : "", problem.message, faults.length > 0 && h("ul", {}, faults)],
    problem.isUnreachable ? 2 * STAY : undefined,
  );
}

/** Whether an error is in the seeds that were sent with the profile. Its line number counts the seeds' lines. */
export function isInSeeds(fault) {
  return fault.file === "seeds";
}

/** An error with its place. In a change of a job's settings that is the setting's name: users do not see the checked text. */
export function faultText(fault) {
  const file = isInSeeds(fault) ? "seeds, " : "";
  const setting = (fault.setting ?? "").replace(/^\/override\/\d+/, "").slice(1).replaceAll("/", ".");
  const isInChange = fault.file === "set" && setting !== "";
  const place = isInChange ? `${setting}: ` : fault.line ? `${file}line ${fault.line}${fault.column ? `:${fault.column}` : ""}: ` : fault.setting ? `${fault.setting}: ` : "";
  return `${place}${fault.problem ?? fault.message ?? String(fault)}${fault.suggestion ? ` (${fault.suggestion})` : ""}`;
}

/** An error in place of a page's content. `reload` is called by the button “Try again”. */
export function blank(problem, reload) {
  return h(
    "div.blank",
    { role: "alert" },
    h("p", {}, problem.message),
    reload && h("button.button", { type: "button", onclick: reload }, "Try again"),
  );
}

function show(kind, content, stay) {
  let list = document.getElementById("notices");
  if (!list) {
    list = h("div", { id: "notices", "aria-label": "Notices", role: "region" });
    document.body.append(list);
  }
  const close = h("button.bare", { type: "button", "aria-label": "Dismiss", onclick: () => notice.remove() }, icon("close"));
  const notice = h(`div.notice.${kind}`, { role: kind === "failed" ? "alert" : "status" });
  list.append(notice);
  append(notice, [h("div", {}, content), close]);
  if (stay) setTimeout(() => notice.remove(), stay);
  while (list.children.length > 4) list.firstElementChild.remove();
}

/**
 * Asks for confirmation and runs `act`. The dialog closes if `act` succeeds; otherwise it stays open with its input.
 * `fields`: input elements of the dialog.
 */
export function ask({ title, text, fields = [], yes, isDangerous = false, act }) {
  const heading = id("ask");
  const error = h("div.form-error", { role: "alert" });
  const submit = h("button.button", { type: "submit", class: isDangerous ? "danger" : "primary" }, yes);
  const dialog = h("dialog", { "aria-labelledby": heading, onclose: () => dialog.remove() });
  const form = h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        put(error);
        try {
          const result = await act(new FormData(form));
          dialog.close();
          if (typeof result === "string") done(result);
        } catch (problem) {
          put(error, problem.message, problem.faults?.length > 0 && h("ul", {}, problem.faults.map((fault) => h("li", {}, faultText(fault)))));
        } finally {
          submit.disabled = false;
        }
      },
    },
    h("h2", { id: heading }, title),
    text && h("p", {}, text),
    fields,
    error,
    h("div.actions", {}, submit, h("button.button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
  );
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** A labelled field; `control` is an input, a select or a text area. */
export function field(label, control, hint) {
  const name = control.id || id("field");
  control.id = name;
  const hintName = hint && `${name}-hint`;
  if (hintName) control.setAttribute("aria-describedby", hintName);
  return h("div.field", {}, h("label", { for: name }, label), control, hint && h("p.hint", { id: hintName }, hint));
}

/** A select with these options: `[value, text]`, or a text that is also the value. */
export function choice(attributes, options, chosen) {
  return h(
    "select",
    attributes,
    options.map((option) => {
      const [value, label] = Array.isArray(option) ? option : [option, option];
      return h("option", { value, selected: value === chosen }, label);
    }),
  );
}
