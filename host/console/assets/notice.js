// What has been done, what could not be, and questions before something is. Notices are said to screen readers; errors stay
// until they are put away.

import { append, h, icon, id, put } from "./dom.js";

const STAY = 6000;

/** Says that something has been done. */
export function done(text) {
  show("done", text, STAY);
}

/** Says what went wrong, with every fault that is known. */
export function failed(problem, what) {
  if (problem.name === "AbortError") return;
  const faults = (problem.faults ?? []).map((fault) => h("li", {}, faultText(fault)));
  show(
    "failed",
    [what ? `${what}: ` : "", problem.message, faults.length > 0 && h("ul", {}, faults)],
    problem.isUnreachable ? 2 * STAY : undefined,
  );
}

/** Whether a fault is in seeds that were given beside the profile. Its line is one of the seeds. */
export function isInSeeds(fault) {
  return fault.file === "seeds";
}

/** A fault with its place. In a change of a job's settings it is the name of the setting: nobody has seen the text that is checked. */
export function faultText(fault) {
  const file = isInSeeds(fault) ? "seeds, " : "";
  const setting = (fault.setting ?? "").replace(/^\/override\/\d+/, "").slice(1).replaceAll("/", ".");
  const isInChange = fault.file === "set" && setting !== "";
  const place = isInChange ? `${setting}: ` : fault.line ? `${file}line ${fault.line}${fault.column ? `:${fault.column}` : ""}: ` : fault.setting ? `${fault.setting}: ` : "";
  return `${place}${fault.problem ?? fault.message ?? String(fault)}${fault.suggestion ? ` (${fault.suggestion})` : ""}`;
}

/** A problem where a page's content would be. */
export function blank(problem, again) {
  return h(
    "div.blank",
    { role: "alert" },
    h("p", {}, problem.message),
    again && h("button.button", { type: "button", onclick: again }, "Try again"),
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
 * Asks before something is done; runs `act` and closes where it came to a good end. What was entered stays where it did not.
 * `fields`: elements that the question needs, in a form of their own.
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

/** A select with these values; `[value, words]` or both in one. */
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
