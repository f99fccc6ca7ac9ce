// A second file for stacks.

export function deep(uri) {
  throw new RangeError(`cannot read ${uri}`);
}
