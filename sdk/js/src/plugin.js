// Checks of a plugin's definition, which is the argument of `plugin({…})`, and its description for the contract.

import { schemaOf } from "./settings.js";

/** The functions of each kind. A plugin with at least one of them is of that kind. */
export const KINDS = {
  extractor: ["extract"],
  filter: ["judgeCandidate", "judgeCandidates", "judgeDocument"],
  "digest-stripper": ["strip"],
  "change-evaluator": ["compare"],
  "wait-evaluator": ["evaluate"],
  precedence: ["rankCandidate", "rankCandidates", "rankQueue"],
  observer: ["observe", "report"],
  "page-behavior": ["step"],
};
const FACTS = ["name", "version", "summary", "handles", "settings", "keeps", "attributes", "configure"];

/** Returns the kinds of a plugin, which follow from its functions. */
export const kindsOf = (plugin) =>
  Object.keys(KINDS).filter((kind) => KINDS[kind].some((name) => name in plugin));

/** Makes a plugin. The default export of a module is one plugin or a list. */
export function plugin(definition) {
  const known = [...FACTS, ...Object.values(KINDS).flat()];
  const unknown = Object.keys(definition).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new TypeError(`unknown property ${unknown[0]} of a plugin; known properties: ${known.join(", ")}`);
  for (const name of ["name", "summary"]) {
    if (typeof definition[name] !== "string") throw new TypeError(`a plugin needs a ${name}, which must be a string`);
  }
  if (kindsOf(definition).length === 0) {
    throw new TypeError(`${definition.name} has no kind: it must define one of ${Object.values(KINDS).flat().join(", ")}`);
  }
  return definition;
}

/** Returns the plugin's part of the answer of `setup.describe`, in plain values. */
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
