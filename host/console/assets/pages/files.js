// The files of a job, to download: archive files and their indexes, packages, logs, reports and recorded plugin calls.

import { address, get, job as path, send } from "../api.js";
import { h, id, put } from "../dom.js";
import { bytes, count, when } from "../format.js";
import { badge, chooser, heading, isAtRest, read } from "../job.js";
import { ask, done, failed, field } from "../notice.js";
import { facts, Pages, Table } from "../table.js";

const SIZE = 50;
const POLL = 2000;
const KINDS = [
  ["", "All"],
  ["archive", "Archive files (WARC)"],
  ["index", "Indexes (CDXJ)"],
  ["wacz", "Packages (WACZ)"],
  ["log", "Logs"],
  ["report", "Reports"],
  ["recording", "Recorded plugin calls"],
];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const name = (file) => (file.is_local ? link(file) : h("span.mono", {}, file.name));
  const link = (file) => h("a.mono", { href: address(path(page.job, "files", file.kind, file.name)), download: file.name.replaceAll("/", "-") }, file.name);
  const table = new Table({
    caption: "Files",
    empty: "No files.",
    key: (file) => `${file.kind}/${file.name}`,
    columns: [
      { title: "File", isHead: true, isWide: true, cell: (file) => [name(file), file.is_open && [" ", badge("being-written")], !file.is_local && [" ", badge("only-in-store")]] },
      { title: "Kind", cell: (file) => file.kind },
      { title: "Size", isNumber: true, cell: (file) => bytes(file.size) },
      { title: "Last write", cell: (file) => when(file.modified, { isShort: true }) },
      { title: "Stored at", isWide: true, cell: (file) => (file.stored_at ? h("span.mono", {}, file.stored_at) : "–") },
      { title: "Digest", isWide: true, cell: (file) => (file.digest ? h("span.mono", {}, file.digest) : "–") },
    ],
  });
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows) => table.show(rows),
    load: async (after) => {
      const answer = await read(page, "files", { kind: query.kind, after, limit: SIZE });
      return { rows: answer.files, next: answer.after };
    },
  });
  const tasks = new FileTasks(page, () => pages.reload().catch(failed));
  const refresh = () => Promise.all([pages.reload(), tasks.reload()]);
  await Promise.all([pages.first(), tasks.reload()]);
  const whole = (part, name, text) => h("a.button", { href: address(path(page.job, part)), download: name }, text);
  put(
    page.main,
    heading(page, "Files", h("button.button", { type: "button", onclick: () => refresh().catch(failed) }, "Refresh")),
    tasks.element,
    h(
      "div.toolbar",
      {},
      chooser("Kind", KINDS, query.kind ?? "", (kind) => {
        page.remember({ kind });
        pages.first().catch(failed);
      }),
      h("div.actions", {}, tasks.pack, whole("cdxj", `${page.job}.cdxj`, "Index of all archive files"), whole("pages", `${page.job}-pages.jsonl`, "List of pages")),
    ),
    table.element,
    pages.element,
  );
}

/** Tasks of the daemon on the files: the hand-over to the store, and packages. */
class FileTasks {
  constructor(page, after) {
    this.page = page;
    this.after = after;
    const name = id("handover");
    this.facts = h("div");
    this.progress = h("div", { role: "status" });
    this.pack = h("button.button", { type: "button", "data-needs": "operator", onclick: () => this.askToPack() }, "Pack as WACZ …");
    this.button = h("button.button", { type: "button", "data-needs": "operator", onclick: () => this.begin() }, "Hand over");
    this.handover = h("section.card.parts", { "aria-labelledby": name, hidden: true }, h("h2", { id: name }, "Hand-over"), this.facts, h("div.actions", {}, this.button));
    this.element = h("div.parts", {}, this.progress, this.handover);
  }

  /** Loads the state again, and repeatedly while a task runs. */
  async reload() {
    clearTimeout(this.timer);
    const { page } = this;
    const [state, { task }, { overview }] = await Promise.all([read(page, "handover"), read(page, "file-task"), get(path(page.job), {}, page.signal)]);
    const isActive = Boolean(task) && !task.ended;
    const rests = isAtRest(overview.state);
    this.handover.hidden = state.receivers.length === 0;
    put(
      this.facts,
      facts([
        ["To", state.receivers.map((receiver) => h("div.mono", {}, receiver === "on-close" ? "command archive.on-close" : receiver))],
        ["Handed over", count(state.done + state.moved)],
        ["Of these, no longer in the job", state.moved > 0 && count(state.moved)],
        ["Waiting", count(state.waiting)],
      ]),
      !rests && h("p.hint", {}, "The running crawl hands finished files over by itself."),
    );
    put(this.progress, task && this.words(task));
    this.button.hidden = !rests || state.waiting === 0;
    for (const button of [this.button, this.pack]) button.disabled = isActive;
    if (!isActive || page.signal.aborted) return;
    this.timer = setTimeout(() => this.reload().then(() => this.after()).catch(failed), POLL);
  }

  words({ kind, by, began, ended, package: name, files, failed: lost, messages, problem }) {
    const handed = `${count(files)} ${files === 1 ? "file" : "files"} handed over${lost > 0 ? `, ${count(lost)} failed` : ""}`;
    const progress = kind === "package" ? (ended ? `${name} was ${problem ? "not " : ""}written` : `${name} is being written`) : ended ? handed : `${handed} so far`;
    return [
      h("p", {}, progress, ", started by ", by, ended ? [" ", when(began, { isShort: true })] : "", "."),
      problem && h("p.form-error", {}, problem),
      messages.length > 0 && h("ul.bad-text", {}, messages.map((message) => h("li", {}, message))),
    ];
  }

  askToPack() {
    const title = h("input", { name: "title", maxlength: 1000, autocomplete: "off" });
    const logs = h("input", { type: "checkbox", id: id("logs") });
    ask({
      title: `Pack ${this.page.job} as WACZ`,
      text: "The package has all finished archive files, their index and a list of pages. It is written to the job's folder, and a hand-over stores it.",
      fields: [field("Title", title), h("div.check", {}, logs, h("label", { for: logs.id }, "With crawl.log, which lists every URI that was requested"))],
      yes: "Pack",
      act: async () => {
        const { name } = await send("POST", path(this.page.job, "package"), { title: title.value.trim() || undefined, logs: logs.checked });
        // A small package may be finished before the answer arrives.
        await Promise.all([this.reload(), this.after()]);
        return `${name} is being written`;
      },
    });
  }

  async begin() {
    this.button.disabled = true;
    try {
      const { result } = await send("POST", path(this.page.job, "handover"));
      done(result);
    } catch (problem) {
      failed(problem);
    }
    await Promise.all([this.reload(), this.after()]).catch(failed);
  }
}
