// The checkpoints of a job, and the button that restores one.

import { job as path, send } from "./api.js";
import { h, put } from "./dom.js";
import { bytes, count, utc, when } from "./format.js";
import { isAtRest, read } from "./job.js";
import { ask } from "./notice.js";
import { Pages, Table } from "./table.js";

const SIZE = 20;

/** A section of the page of a job. `after` runs when a checkpoint was restored. */
export class Checkpoints {
  constructor(page, after) {
    this.page = page;
    this.after = after;
    this.shown = [];
    this.mayRestore = false;
    this.hint = h("p.hint", { hidden: true }, "Stop the job to restore one of them.");
    this.problem = h("p.form-error", { role: "alert" });
    this.table = new Table({
      caption: "Checkpoints",
      empty: "No checkpoints. You can make one at any time while the job runs.",
      key: (checkpoint) => checkpoint.name,
      columns: [
        { title: "Checkpoint", isHead: true, cell: (checkpoint) => h("span.mono", {}, checkpoint.name) },
        { title: "Time", cell: (checkpoint) => when(checkpoint.made, { isShort: true }) },
        { title: "URIs known", isNumber: true, cell: (checkpoint) => orDash(checkpoint.uris, count) },
        { title: "Frontier", isNumber: true, cell: (checkpoint) => orDash(checkpoint.bytes, bytes) },
        { title: "Archive size", isNumber: true, cell: (checkpoint) => orDash(checkpoint.warcs, (files) => `${bytes(checkpoint.warc_bytes)} in ${count(files)} ${files === 1 ? "file" : "files"}`) },
        { title: "Components", cell: (checkpoint) => checkpoint.components.join(", ") || "–" },
        { title: "Actions", isWide: true, cell: (checkpoint) => this.action(checkpoint) },
      ],
    });
    this.pages = new Pages({
      size: SIZE,
      list: this.table.element,
      show: (rows) => {
        this.shown = rows;
        this.show();
      },
      load: async (behind) => {
        const answer = await read(page, "checkpoints", { after: behind, limit: SIZE });
        return { rows: answer.checkpoints, next: answer.after };
      },
    });
    this.element = h("section.card", {}, h("h2", {}, "Checkpoints"), this.hint, this.problem, this.table.element, this.pages.element);
  }

  /** Loads the checkpoints again. */
  async reload() {
    try {
      await this.pages.reload();
      put(this.problem);
    } catch (problem) {
      if (problem.name !== "AbortError") put(this.problem, problem.message);
    }
  }

  /** Checkpoints can be restored only while no process runs the job. */
  state(state) {
    this.mayRestore = isAtRest(state);
    this.show();
  }

  show() {
    this.hint.hidden = this.mayRestore || this.shown.length === 0;
    this.table.show(this.shown.map((checkpoint) => ({ ...checkpoint, mayRestore: this.mayRestore })));
  }

  action(checkpoint) {
    if (checkpoint.problem) return h("div.warn-text", {}, checkpoint.problem);
    return checkpoint.mayRestore ? this.button(checkpoint) : "–";
  }

  button(checkpoint) {
    const label = `Restore ${checkpoint.name}`;
    return h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": label, onclick: () => this.ask(checkpoint) }, "Restore …");
  }

  ask(checkpoint) {
    const { page } = this;
    ask({
      title: `Restore ${page.job}?`,
      text: `The job returns to its state of ${utc(checkpoint.made)}, with ${count(checkpoint.uris)} URIs. URIs found since and changes of settings, seeds and plugins since are lost. The job crawls again what it has crawled since. Archive files, logs and history are kept.`,
      yes: "Restore",
      isDangerous: true,
      act: async () => {
        const answer = await send("POST", path(page.job, "restore"), { checkpoint: checkpoint.name });
        this.after();
        return answer?.result ?? "the job was restored";
      },
    });
  }
}

function orDash(value, format) {
  return value === null || value === undefined ? "–" : format(value);
}
