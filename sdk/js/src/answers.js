// Short ways to write what plugins answer.

/** Yes, and why. */
export const accept = (reason = "") => ({ verdict: "accept", reason });
/** No, and why. */
export const reject = (reason = "") => ({ verdict: "reject", reason });
/** No opinion. */
export const pass = () => ({ verdict: "pass", reason: "" });
/** At mid-fetch alone: the headers say that nothing has changed. */
export const unchanged = (reason = "") => ({ verdict: "unchanged", reason });
/** At post-fetch alone: no success; fetch it again after so many milliseconds. */
export const retry = (wait, reason = "") => ({ verdict: { retry: wait }, reason });

/** Thrown by `strip`: nothing can be said about this document. */
export class StripProblem extends Error {
  /** @param problem a text, or `{ "too-large": bytes }` */
  constructor(problem) {
    super(typeof problem === "string" ? problem : `too large: ${problem["too-large"]} bytes`);
    this.problem = problem;
  }
}
