// Functions that make rulings, and the error of digest strippers.

/** Makes a ruling that accepts. */
export const accept = (reason = "") => ({ verdict: "accept", reason });
/** Makes a ruling that rejects. */
export const reject = (reason = "") => ({ verdict: "reject", reason });
/** Makes a ruling that leaves the decision to other filters. */
export const pass = () => ({ verdict: "pass", reason: "" });
/** Makes a ruling for stage mid-fetch: the headers show that nothing has changed. */
export const unchanged = (reason = "") => ({ verdict: "unchanged", reason });
/** Makes a ruling for stage post-fetch: the URI is fetched again after `wait` milliseconds. */
export const retry = (wait, reason = "") => ({ verdict: { retry: wait }, reason });

/** The reason why a document cannot be stripped, thrown by `strip`. */
export class StripProblem extends Error {
  /** @param problem a text, or `{ "too-large": bytes }` */
  constructor(problem) {
    super(typeof problem === "string" ? problem : `too large: ${problem["too-large"]} bytes`);
    this.problem = problem;
  }
}
