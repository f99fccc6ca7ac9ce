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
    this.mayGoBack = false;
    this.hint = h("p.hint", { hidden: true }, "Stop the job to restore one of them.");
    this.problem = h("p.form-error", { role: "alert" });
    this.table = new Table({
      caption: "Checkpoints",
      empty: "No checkpoints. You can make one at any time while the job runs.",
      key: (kept) => kept.name,
      columns: [
        { title: "Checkpoint", isHead: true, cell: (kept) => h("span.mono", {}, kept.name) },
        { title: "Time", cell: (kept) => when(kept.made, { isShort: true }) },
        { title: "URIs known", isNumber: true, cell: (kept) => known(kept.uris, count) },
        { title: "Frontier", isNumber: true, cell: (kept) => known(kept.bytes, bytes) },
        { title: "Archive size", isNumber: true, cell: (kept) => known(kept.warcs, (files) => `${bytes(kept.warc_bytes)} in ${count(files)} ${files === 1 ? "file" : "files"}`) },
        { title: "Components", cell: (kept) => kept.components.join(", ") || "–" },
        { title: "Actions", isWide: true, cell: (kept) => this.way(kept) },
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
    this.mayGoBack = isAtRest(state);
    this.show();
  }

  show() {
    this.hint.hidden = this.mayGoBack || this.shown.length === 0;
    this.table.show(this.shown.map((kept) => ({ ...kept, mayGoBack: this.mayGoBack })));
  }

  way(kept) {
    if (kept.problem) return h("div.warn-text", {}, kept.problem);
    return kept.mayGoBack ? this.button(kept) : "–";
  }

  button(kept) {
    const label = `Restore ${kept.name}`;
    return h("button.button.small", { type: "button", "data-needs": "operator", "aria-label": label, onclick: () => this.ask(kept) }, "Restore …");
  }

  ask(kept) {
    const { page } = this;
    ask({
      title: `Restore ${page.job}?`,
      text: `The job returns to its state of ${utc(kept.made)}, with ${count(kept.uris)} URIs. URIs found since and changes of settings, seeds and plugins since are lost. The job crawls again what it has crawled since. Archive files, logs and history are kept.`,
      yes: "Restore",
      isDangerous: true,
      act: async () => {
        const answer = await send("POST", path(page.job, "restore"), { checkpoint: kept.name });
        this.after();
        return answer?.result ?? "the job was restored";
      },
    });
  }
}

function known(value, format) {
  return value === null || value === undefined ? "–" : format(value);
}
