// A plugin's settings in the profile. Each is a JSON Schema with a default and a description for operators.

/** An error in a setting, thrown by `configure`. */
export class SettingsFault extends Error {
  /**
   * @param pointer JSON Pointer such as `/patterns/0`; empty for the settings as a whole
   * @param problem a lower-case fragment
   */
  constructor(pointer, problem) {
    super(`${pointer}: ${problem}`);
    this.faults = [{ pointer, problem }];
  }

  /** Joins several errors into one. */
  static all(faults) {
    const several = new SettingsFault("", faults.map((fault) => fault.message).join("; "));
    several.faults = faults.flatMap((fault) => fault.faults);
    return several;
  }
}

const setting = (type) => (fallback, description, { overridable, expert, level, table, ...limits } = {}) => ({
  ...type,
  ...limits,
  ...(fallback !== undefined && { default: fallback }),
  ...(description && { description }),
  ...(overridable && { "x-opilio-overridable": true }),
  ...(expert && { "x-opilio-expert": true }),
  ...(level && { "x-opilio-level": level }),
  ...(table && { "x-opilio-table": true }),
});

/** A text. */
export const text = setting({ type: "string" });
/** True or false. */
export const flag = setting({ type: "boolean" });
/** A whole number. */
export const integer = setting({ type: "integer" });
/** Any number. */
export const number = setting({ type: "number" });
/** A list of values of one type. */
export const list = (items, ...rest) => setting({ type: "array", items })(...rest);
/** Values of one type by name. */
export const map = (values, ...rest) => setting({ type: "object", additionalProperties: values })(...rest);
/** One of these texts. */
export const choice = (texts, ...rest) => setting({ type: "string", enum: texts })(...rest);

/** Returns the schema of settings by name. Settings without a default are required. */
export function schemaOf(settings) {
  const required = Object.keys(settings).filter((name) => !("default" in settings[name]));
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    additionalProperties: false,
    properties: settings,
    ...(required.length > 0 && { required }),
  };
}

/** Returns the given settings with defaults for missing ones. Tests may pass settings that do not match the schema. */
export function withDefaults(settings, given) {
  const unknown = Object.keys(given).filter((name) => !(name in settings));
  if (unknown.length > 0) {
    const known = Object.keys(settings).join(", ") || "none";
    throw new SettingsFault(`/${unknown[0]}`, `unknown setting; known settings: ${known}`);
  }
  const values = {};
  for (const [name, { default: fallback }] of Object.entries(settings)) {
    values[name] = given[name] ?? fallback;
    if (values[name] === undefined) throw new SettingsFault(`/${name}`, "is required");
  }
  return values;
}
