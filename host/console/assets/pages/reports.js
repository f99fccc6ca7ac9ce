// Reports of a job, as they are at this moment.

import { address, job as path, text } from "../api.js";
import { h, put } from "../dom.js";
import { chooser, heading, read } from "../job.js";
import { failed } from "../notice.js";

/** Opens the page. */
export async function open(page) {
  const { reports } = await read(page, "reports");
  let kind = reports.includes(page.query.kind) ? page.query.kind : reports[0];
  const shown = h("pre.lines", { tabindex: "0", "aria-label": "The report" });
  const links = h("div.actions");
  const load = async () => {
    const content = await text(path(page.job, "reports", kind), { format: "text" }, page.signal);
    put(shown, content || "The report is empty.");
    put(
      links,
      h("a.button", { href: address(path(page.job, "reports", kind), { format: "text" }), download: `${page.job}-${kind}.txt` }, "Save as text"),
      h("a.button", { href: address(path(page.job, "reports", kind), { format: "json" }), download: `${page.job}-${kind}.json` }, "Save as JSON"),
    );
  };
  const change = (value) => {
    kind = value;
    page.remember({ kind });
    load().catch(failed);
  };
  await load();
  put(
    page.main,
    heading(page, "Reports", h("button.button", { type: "button", onclick: () => load().catch(failed) }, "Refresh")),
    h("div.toolbar", {}, chooser("Report", reports, kind, change), links),
    shown,
  );
}
