declare module 'opilio:plugin/counters@0.3.0' {
  /**
   * Adds `n` to a counter. Names are lower-case words joined by hyphens, at most 64 bytes. Other names, and names past the
   * first 64 (by default), are counted as `other`.
   */
  export function count(name: string, n: bigint): void;
}
