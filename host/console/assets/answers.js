// Answers that come in another order than their questions were asked: a slow one must not be shown over a newer one.

/** Shows answers. One is left out if what is shown was asked, or told, after its question. */
export class Answers {
  constructor(show) {
    this.show = show;
    this.count = 0;
    this.shown = 0;
  }

  /** Waits for the answer to a question that was just asked, a promise, and shows it. Fails as the question does, unless a newer answer is shown. */
  async ask(question) {
    this.count += 1;
    const mine = this.count;
    let answer;
    try {
      answer = await question;
    } catch (problem) {
      if (mine > this.shown) throw problem;
      return;
    }
    if (mine < this.shown) return;
    this.shown = mine;
    this.show(answer);
  }

  /** Shows what was told unasked, such as an event: it is newer than the answers to all earlier questions. */
  tell(answer) {
    this.count += 1;
    this.shown = this.count;
    this.show(answer);
  }
}
