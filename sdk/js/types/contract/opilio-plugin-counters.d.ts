declare module 'opilio:plugin/counters@0.3.0' {
  /**
   * Adds `n` to a counter. Names are lower-case words joined by hyphens. Names past the first 64 are counted as `other`.
   */
  export function count(name: string, n: bigint): void;
}
