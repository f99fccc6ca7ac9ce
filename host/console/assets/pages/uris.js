// URIs of a job: one by its address, or all of a site, a pattern or an outcome, and actions on all of these at once.

import { Answers } from "../answers.js";
import { get, job as path, send } from "../api.js";
import { h, put, setText } from "../dom.js";
import { count, when } from "../format.js";
import { badge, fetchStatus, heading, place, queueLink, read, uriLink } from "../job.js";
import { ask, choice, failed, field } from "../notice.js";
import { Pages, Table } from "../table.js";

const SIZE = 100;
const STATES = [["", "any"], "queued", "open", "succeeded", "failed", "disregarded", "prerequisite", "done", "deleted", "faded"];

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const uri = h("input", { type: "search", "data-search": true, spellcheck: "false", autocapitalize: "off", placeholder: "https://example.org/page" });
  const surt = h("input", { value: query.surt ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "http://(org,example," });
  const regex = h("input", { value: query.regex ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "\\.pdf$" });
  const host = h("input", { value: query.host ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "www.example.org" });
  const status = h("input", { value: query.status ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "404, 5xx, -2" });
  const state = choice({}, STATES, query.state ?? "");
  const type = h("input", { value: query.media_type ?? "", spellcheck: "false", autocapitalize: "off", placeholder: "text/html" });
  const countText = h("p.muted", { role: "status" });
  const table = new Table({
    caption: "URIs",
    empty: "No matching URIs.",
    key: (row) => row.uri,
    columns: [
      { title: "URI", isHead: true, isWide: true, cell: (row) => uriLink(page.job, row.uri) },
      { title: "State", cell: (row) => badge(row.last_outcome === "open" ? row.state : row.last_outcome) },
      { title: "Status", isNumber: true, cell: (row) => fetchStatus(row.status) },
      { title: "Visits", isNumber: true, cell: (row) => count(row.visits ?? 0) },
      { title: "Versions", isNumber: true, cell: (row) => count(row.versions ?? 0) },
      { title: "Due", cell: (row) => when(row.due, { isShort: true }) },
      { title: "Media type", cell: (row) => row.media_type ?? "–" },
      { title: "Queue", cell: (row) => queueLink(page.job, row.queue) },
    ],
  });
  const conditions = { surt, regex, host, status, state, media_type: type };
  const which = () => Object.fromEntries(Object.entries(conditions).map(([name, input]) => [name, input.value.trim() || undefined]));
  const numbers = new Answers((text) => setText(countText, text));
  // The conditions of the list. Input in the fields does not change them until the user searches.
  let listed = which();
  const pages = new Pages({
    size: SIZE,
    list: table.element,
    show: (rows) => table.show(rows),
    load: async (after) => {
      const answer = await read(page, "uris", { ...listed, after, limit: SIZE });
      return { rows: answer.uris, next: answer.after };
    },
  });
  const show = async () => {
    listed = which();
    page.remember(listed);
    await numbers.ask(pages.first().then(() => (pages.next === null ? "" : `More than ${count(SIZE)} matching URIs. “Count” shows their number.`)));
  };
  const tally = async () => {
    numbers.showEvent("Counting …");
    const answer = get(path(page.job, "uris", "count"), which(), page.signal);
    await numbers.ask(answer.then(({ meant, examined }) => `${count(meant)} matching URIs, ${count(examined)} examined`));
    return (await answer).meant;
  };
  const sweep = async (method, title, text) => {
    const chosen = which();
    if (!Object.values(chosen).some(Boolean)) {
      failed(new Error("give a condition, such as a SURT prefix; this action never selects all URIs"));
      return;
    }
    try {
      const number = await tally();
      ask({
        title: `${title} ${count(number)} URIs?`,
        text,
        yes: title,
        isDangerous: true,
        act: async () => {
          const answer = await send("POST", path(page.job, "uris", method), chosen);
          await show();
          return `${title}: ${count(answer.meant)} URIs${answer.in_process > 0 ? `; ${count(answer.in_process)} are being fetched and are kept` : ""}`;
        },
      });
    } catch (problem) {
      failed(problem);
    }
  };

  await show();
  put(
    page.main,
    heading(page, "URIs"),
    h(
      "form.toolbar",
      {
        role: "search",
        onsubmit: (event) => {
          event.preventDefault();
          if (uri.value.trim()) location.hash = place(page.job, "uri", { uri: uri.value.trim() });
        },
      },
      grow(field("One URI", uri)),
      h("button.button.primary", { type: "submit" }, "Open"),
    ),
    h(
      "form.toolbar",
      {
        onsubmit: (event) => {
          event.preventDefault();
          show().catch(failed);
        },
      },
      grow(field("SURT prefix", surt)),
      grow(field("Regular expression", regex)),
      field("Host", host),
      field("Status", status),
      field("State", state),
      field("Media type", type),
      h("button.button", { type: "submit" }, "List"),
      h("button.button", { type: "button", onclick: () => tally().catch(failed) }, "Count"),
      h("button.button.danger", { type: "button", "data-needs": "operator", onclick: () => sweep("delete", "Delete", "The URIs leave their queues and stay known, so that they are not found again.") }, "Delete …"),
      h("button.button.danger", { type: "button", "data-needs": "operator", onclick: () => sweep("forget", "Forget", "The records of the URIs are removed, so that they may be found again.") }, "Forget …"),
    ),
    countText,
    table.element,
    pages.element,
  );
}

function grow(element) {
  element.classList.add("grow");
  return element;
}
