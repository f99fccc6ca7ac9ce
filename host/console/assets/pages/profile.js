// The profile with which a job was created, and the later changes of the named profile. The job has its own copy.

import { get, job as path, text } from "../api.js";
import { diffView } from "../diff.js";
import { h, put } from "../dom.js";
import { Editor } from "../editor.js";
import { heading } from "../job.js";
import { comparePlace, profilePlace } from "./profiles.js";

/** Opens the page. */
export async function open(page) {
  const [profile, origin] = await Promise.all([text(path(page.job, "profile"), {}, page.signal), get(path(page.job, "profile-origin"), {}, page.signal)]);
  // The text is read-only, so it is not checked.
  const editor = new Editor({ label: "Profile (TOML)", value: profile, rows: 30, isReadOnly: true });
  put(
    page.main,
    heading(page, "Profile", h("button.button", { type: "button", "data-needs": "operator", onclick: () => makeJob(profile) }, "New job from this text")),
    h("p.hint", {}, "The profile that the job was created with. Later changes are under Settings and History. To change it for the next job, edit the named profile, or a copy of this text."),
    originOf(origin, page.job),
    editor.element,
  );
}

function originOf({ profile, version, newest, diff }, job) {
  if (!profile) return h("p.muted", {}, "The job was created from a file or a text, not from a named profile.");
  const name = h("a", { href: profilePlace(profile) }, profile);
  const began = version ? [name, ` version ${version}`] : ["the shipped profile ", name];
  const now = [
    diff === undefined || diff === null
      ? "The profile has been deleted since."
      : diff === ""
        ? "The newest version is the same."
        : newest && newest !== version
          ? ["The newest version is ", h("a", { href: comparePlace({ profile, version, with: profile }) }, String(newest)), "."]
          : "The text of the job differs from it.",
  ];
  return h(
    "section.card",
    {},
    h("h2", {}, "Named profile"),
    h("p", {}, "Created with ", began, ". ", now),
    diff && h("details", {}, h("summary", {}, "Difference to the newest version"), diffView(diff, `Difference of ${job} to the newest version of ${profile}`, "")),
  );
}

function makeJob(toml) {
  sessionStorage.setItem("opilio-draft", JSON.stringify({ profile: toml }));
  location.hash = "#/new";
}
