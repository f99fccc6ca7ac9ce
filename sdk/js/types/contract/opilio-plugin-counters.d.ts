declare module 'opilio:plugin/counters@0.2.0' {
  /**
   * Adds `n` to the counter. Names are lower-case words joined by hyphens; past 64 names the rest is counted as `other`.
   */
  export function count(name: string, n: bigint): void;
}
