// Named profiles: saved and shipped ones.

import { get, profile as path, send } from "../api.js";
import { h, put } from "../dom.js";
import { person, when } from "../format.js";
import { badge } from "../job.js";
import { ask, field } from "../notice.js";
import { session } from "../session.js";
import { Table } from "../table.js";

const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]*";

/** The address of a profile's page. */
export function profilePlace(name, query = {}) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  return `#/profiles/${encodeURIComponent(name)}${[...search].length > 0 ? `?${search}` : ""}`;
}

/** The address of a comparison. */
export function comparePlace(query) {
  return `#/compare-profiles?${new URLSearchParams(Object.entries(query).filter(([, value]) => value))}`;
}

/** Opens the page. */
export async function open(page) {
  const { profiles } = await get("profiles", {}, page.signal);
  const table = new Table({
    caption: "Profiles",
    empty: "No profiles.",
    key: (profile) => profile.name,
    columns: [
      { title: "Profile", isHead: true, cell: (profile) => h("a", { href: profilePlace(profile.name) }, profile.name) },
      { title: "Purpose", isWide: true, cell: (profile) => (profile.problem ? h("span.bad-text", {}, profile.problem) : [profile.description ?? "–", faulty(profile.faults)]) },
      { title: "Version", isNumber: true, cell: (profile) => profile.version ?? "–" },
      {
        title: "Changed",
        cell: (profile) => (profile.ships ? badge("shipped") : [profile.changed_by ? [person(profile.changed_by), " "] : "", profile.changed && when(profile.changed, { isShort: true })]),
      },
      {
        title: "Actions",
        cell: (profile) =>
          !profile.problem &&
          h(
            "div.actions",
            {},
            h("a.button.small", { href: `#/new?profile=${encodeURIComponent(profile.name)}`, "data-needs": "operator", "aria-label": `New job with ${profile.name}` }, "New job"),
            h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": `Copy ${profile.name}`, onclick: () => askToCopy(profile.name) }, "Copy"),
            !profile.ships &&
              h("button.button.small.danger", { type: "button", "data-needs": "admin", "aria-label": `Delete ${profile.name}`, onclick: () => askToDelete(profile.name, page.reload) }, "Delete"),
          ),
      },
    ],
  });
  table.show(profiles);
  put(
    page.main,
    h(
      "div.head",
      {},
      h("h1", {}, "Profiles"),
      h("div.actions", {}, h("a.button.primary", { href: "#/new-profile", "data-needs": "operator" }, "New profile"), profiles.length > 1 && h("a.button", { href: comparePlace({ profile: profiles[0].name, with: profiles[1].name }) }, "Compare")),
    ),
    h("p.muted", {}, "A profile has the settings of a crawl. Each change creates a version. A job keeps the version with which it was created. ", session.role === "viewer" ? "" : "Shipped profiles cannot be changed; copy them."),
    table.element,
  );
}

/** The number of errors of a profile, if it has any. */
function faulty(faults) {
  const errors = faults.filter((fault) => fault.level === "error").length;
  return errors > 0 && h("span.bad-text", {}, ` – ${errors === 1 ? "1 error" : `${errors} errors`}`);
}

/** Asks for a name and copies a profile, or a version of it. */
export function askToCopy(name, version) {
  const newName = h("input", { required: true, value: `${name}-2`, autocomplete: "off", pattern: NAME });
  const reason = h("input", { maxlength: 1000, autocomplete: "off" });
  ask({
    title: version ? `Copy version ${version} of ${name}` : `Copy ${name}`,
    fields: [field("Name of the new profile", newName, "Letters, digits, dots, hyphens and underscores."), field("Reason, for the history", reason)],
    yes: "Copy",
    act: async () => {
      const made = await send("POST", path(name, "copy"), { name: newName.value.trim(), version, reason: reason.value.trim() || undefined });
      location.hash = profilePlace(made.name);
      return `${made.name} was created`;
    },
  });
}

/** Asks before a profile is deleted; `after` runs after the deletion. `shown` is the tag of the version on the page, if any. */
export function askToDelete(name, after, shown) {
  const reason = h("input", { maxlength: 1000, autocomplete: "off" });
  ask({
    title: `Delete profile ${name}?`,
    text: "Its versions are kept, and a new profile of this name continues their numbers. Jobs have their own copies. Calendar entries that use the profile fail.",
    fields: [field("Reason, for the history", reason)],
    yes: "Delete",
    isDangerous: true,
    act: async () => {
      const tag = shown ?? (await get(path(name))).tag;
      await send("DELETE", path(name), undefined, { reason: reason.value.trim() }, { "if-match": `"${tag}"` });
      after();
      return `profile ${name} was deleted`;
    },
  });
}

/** Fills a select with versions; the newest is selected if none is chosen. */
export function offerVersions(select, versions, chosen) {
  const kept = versions.filter((version) => version.change !== "delete");
  put(select, h("option", { value: "" }, "newest"), kept.map((version) => h("option", { value: String(version.number) }, `version ${version.number}`)));
  select.value = chosen ?? "";
}
