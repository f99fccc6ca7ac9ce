// A file of its own, so that stacks name two.

export function deep(uri) {
  throw new RangeError(`nothing is good about ${uri}`);
}
