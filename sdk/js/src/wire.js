// Conversion between the values of plugins and those of the bindings. Variants are `"name"` or `{ name: value }` for plugins
// and `{ tag, val }` for bindings. A missing value is undefined. 64-bit numbers have the type that the engine needs.
// Answers of plugins are checked. The error for a wrong type names the place of the value.

/** Converts a value of the host to a plain value. */
export function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (value === null) return undefined;
  if (typeof value !== "object" || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(plain);
  if ("tag" in value) {
    if (value.tag === "other") return value.val;
    return value.val === undefined || value.val === null ? value.tag : { [value.tag]: plain(value.val) };
  }
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, plain(field)]));
}

let lowerU64 = (number) => number;

/** Sets the conversion to the engine's 64-bit numbers: numbers in QuickJS, bigints in StarlingMonkey. */
export function use64BitNumbers(lower) {
  lowerU64 = lower;
}

function wrongType(value, at, wanted) {
  const got = value === undefined ? "nothing" : Array.isArray(value) ? "a list" : `${typeof value} ${shortened(value)}`;
  return new TypeError(`${at || "the answer"} must be ${wanted}, not ${got}`);
}

function shortened(value) {
  const text = typeof value === "bigint" ? String(value) : (JSON.stringify(value) ?? "");
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

export function text(value, at) {
  if (typeof value !== "string") throw wrongType(value, at, "a string");
  return value;
}

export function flag(value, at) {
  if (typeof value !== "boolean") throw wrongType(value, at, "true or false");
  return value;
}

const whole = (max, lower, min = 0) => (value, at) => {
  const wanted = min === 0 ? `a whole number up to ${max}` : `a whole number from ${min} to ${max}`;
  if (!Number.isInteger(value) || value < min || value > max) throw wrongType(value, at, wanted);
  return lower(value);
};
export const u8 = whole(255, (number) => number);
export const precedence = whole(255, (number) => number, 1);
export const u32 = whole(2 ** 32 - 1, (number) => number);
export const s32 = whole(2 ** 31 - 1, (number) => number, -(2 ** 31));
export const u64 = whole(Number.MAX_SAFE_INTEGER, (number) => lowerU64(number));

export function bytes(value, at) {
  if (value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return Uint8Array.from(value, (byte, index) => u8(byte, `${at}[${index}]`));
  throw wrongType(value, at, "bytes");
}

export const optional = (lower) => (value, at) =>
  value === undefined || value === null ? undefined : lower(value, at);

export const list = (lower) => (value, at) => {
  if (typeof value !== "object" || value === null || !(Symbol.iterator in value)) throw wrongType(value, at, "a list");
  return Array.from(value, (item, index) => lower(item, `${at}[${index}]`));
};

/** Returns a function that lowers a record. `fields` has a function for each field, or `[function, default]`. */
export const record = (fields) => (value, at) => {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw wrongType(value, at, "an object");
  const unknown = Object.keys(value).find((name) => !(name in fields));
  if (unknown) {
    const known = Object.keys(fields).join(", ");
    throw new TypeError(`${at || "the answer"} has an unknown field ${unknown}; known fields: ${known}`);
  }
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => {
      const [lower, fallback] = Array.isArray(field) ? field : [field];
      return [name, lower(value[name] ?? fallback, at ? `${at}.${name}` : name)];
    }),
  );
};

/**
 * Returns a function that lowers a variant. `cases` has a function for each case, or null for cases without a value. If there
 * is a case `other`, unknown names become that case.
 */
export const variant = (cases) => (value, at) => {
  const [tag, payload] =
    typeof value === "object" && value !== null ? (Object.entries(value)[0] ?? [undefined]) : [value];
  if (Object.hasOwn(cases, tag) && (cases[tag] === null) === (payload === undefined)) {
    return cases[tag] === null ? { tag } : { tag, val: cases[tag](payload, `${at}.${tag}`) };
  }
  if (cases.other && typeof value === "string" && !Object.hasOwn(cases, value)) return { tag: "other", val: value };
  throw wrongType(value, at, `one of ${Object.keys(cases).join(", ")}`);
};

export const cases = (names) => (value, at) => {
  if (!names.includes(value)) throw wrongType(value, at, `one of ${names.join(", ")}`);
  return value;
};
