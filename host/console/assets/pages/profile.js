// The profile that a job was made from. It stays what it was; the editor is for the next job.

import { get, job as path, send, text } from "../api.js";
import { h, put } from "../dom.js";
import { Editor } from "../editor.js";
import { heading } from "../job.js";
import { session } from "../session.js";

/** Opens the page. */
export async function open(page) {
  const profile = await text(path(page.job, "profile"), {}, page.signal);
  const isLooking = session.role === "viewer";
  const editor = new Editor({ label: "Profile (TOML)", value: profile, rows: 30, check: checkProfile, isReadOnly: isLooking });
  if (!isLooking) readSchema(editor, page.signal);
  put(
    page.main,
    heading(page, "Profile", h("button.button.primary", { type: "button", "data-needs": "operator", onclick: () => makeJob(editor.value) }, "New job from this text")),
    h(
      "p.hint",
      {},
      "The profile that the job was created with. Later changes are under Settings and History. ",
      !isLooking && "Edit it to create a new job; this job does not change. Ctrl+Space suggests settings.",
    ),
    editor.element,
  );
  if (!isLooking) editor.judge();
}

/** Faults of a profile. */
export async function checkProfile(toml) {
  const answer = await send("POST", "profiles/check", { toml });
  return answer.faults;
}

/** Gives an editor the schema once it is there; without it nothing is proposed. */
export function readSchema(editor, signal) {
  get("profile-schema", {}, signal)
    .then((schema) => (editor.schema = schema))
    .catch(() => undefined);
}

function makeJob(toml) {
  sessionStorage.setItem("opilio-draft", JSON.stringify({ profile: toml }));
  location.hash = "#/new";
}
