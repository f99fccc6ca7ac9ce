// A second file for stacks.

export function deep(uri) {
  throw new RangeError(`nothing is good about ${uri}`);
}
