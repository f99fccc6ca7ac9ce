// Who a plugin is: what `plugin({…})` is given, checked, and as the contract describes it.

import { schemaOf } from "./settings.js";

/** The kinds, and the functions of which a plugin of that kind has one or more. */
export const KINDS = {
  extractor: ["extract"],
  filter: ["judgeCandidate", "judgeCandidates", "judgeDocument"],
  "digest-stripper": ["strip"],
  "change-evaluator": ["compare"],
  "wait-evaluator": ["evaluate"],
  precedence: ["rankCandidate", "rankCandidates", "rankQueue"],
  observer: ["observe", "report"],
};
const FACTS = ["name", "version", "summary", "handles", "settings", "keeps", "attributes", "configure"];

/** What the plugin can do, by the functions it has. */
export const kindsOf = (plugin) =>
  Object.keys(KINDS).filter((kind) => KINDS[kind].some((name) => name in plugin));

/** A plugin. A module's default export is one, or a list of them. */
export function plugin(definition) {
  const known = [...FACTS, ...Object.values(KINDS).flat()];
  const unknown = Object.keys(definition).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`a plugin has no ${unknown[0]}; it may have ${known.join(", ")}`);
  for (const name of ["name", "summary"]) {
    if (typeof definition[name] !== "string") throw new TypeError(`a plugin needs a ${name}, which is a text`);
  }
  if (kindsOf(definition).length === 0) {
    throw new TypeError(`${definition.name} does nothing: it has none of ${Object.values(KINDS).flat().join(", ")}`);
  }
  return definition;
}

/** What `setup.describe` says of it, in plain values. */
export function describe({ name, version = "0.0.0", summary, handles = {}, settings = {}, keeps = [], attributes = [], ...rest }) {
  return {
    name,
    version,
    summary,
    kinds: kindsOf(rest),
    handles: { mediaTypes: handles.mediaTypes ?? [], uris: handles.uris ?? [] },
    settingsSchema: JSON.stringify(schemaOf(settings)),
    keeps,
    attributes,
  };
}
