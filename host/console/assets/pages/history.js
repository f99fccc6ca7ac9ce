// The changes of a job since it was created, with user and time.

import { h, put } from "../dom.js";
import { person, utc, when, words } from "../format.js";
import { heading, read } from "../job.js";
import { Pages } from "../table.js";

const SIZE = 50;
const WORDS = { set: "settings changed", "add-seeds": "seeds added", "remove-seed": "seed removed", restore: "restored" };
const ACTIONS = { add: "added", change: "changed", move: "moved", remove: "removed" };

/** Opens the page. */
export async function open(page) {
  const list = h("ol.timeline");
  const pages = new Pages({
    size: SIZE,
    list,
    show: (changes) => put(list, changes.length === 0 ? h("li", {}, "No changes since the job was created.") : changes.map(entry)),
    load: async (after) => {
      const answer = await read(page, "history", { after, limit: SIZE });
      const last = answer.changes.at(-1);
      return { rows: answer.changes, next: answer.after ?? (answer.changes.length === SIZE ? last.number : null) };
    },
  });
  await pages.first();
  put(page.main, heading(page, "History"), h("section.card", {}, list), pages.element);
}

function entry(change) {
  const content = change.toml ?? change.seeds?.join("\n") ?? (change.checkpoint ? `to checkpoint ${change.checkpoint}, of ${utc(change.made)}` : change.text);
  return h(
    "li",
    {},
    h("strong", {}, change.change === "override" ? `override ${change.id}: ${ACTIONS[change.action] ?? change.action}` : (WORDS[change.change] ?? words(change.change))),
    ` by ${person(change.by)} `,
    change.reason && h("div", {}, change.reason),
    h("div.hint", {}, change.number && `no. ${change.number}, `, when(change.at)),
    content && h("pre.lines.small", { tabindex: "0", "aria-label": "Content of the change" }, content),
  );
}
