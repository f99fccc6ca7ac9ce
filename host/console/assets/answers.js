// Shows the newest of several answers. Requests may be answered in another order than they were sent, and a late answer must not
// replace a newer one.

/** Shows answers to requests, and events. An answer is dropped if the one shown belongs to a later request or event. */
export class Answers {
  constructor(show) {
    this.show = show;
    this.count = 0;
    this.shown = 0;
  }

  /** Shows the answer to a request (a promise). Rejects if the request fails, unless a newer answer is shown. */
  async ask(request) {
    this.count += 1;
    const mine = this.count;
    let answer;
    try {
      answer = await request;
    } catch (problem) {
      if (mine > this.shown) throw problem;
      return;
    }
    if (mine < this.shown) return;
    this.shown = mine;
    this.show(answer);
  }

  /** Shows data that came without a request, such as an event. It counts as newer than the answers to all earlier requests. */
  showEvent(answer) {
    this.count += 1;
    this.shown = this.count;
    this.show(answer);
  }
}
