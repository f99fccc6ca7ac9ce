// Reports of a job, as they are at this moment: those of the crawl, and those that observers make.

import { address, job as path, text } from "../api.js";
import { h, put } from "../dom.js";
import { chooser, heading, read } from "../job.js";
import { failed } from "../notice.js";

/** Opens the page. */
export async function open(page) {
  const [{ reports }, observed] = await Promise.all([
    read(page, "reports"),
    // The reports of the crawl are shown though an observer fails.
    read(page, "observers").catch((problem) => ({ reports: [], problem })),
  ]);
  let ofObservers = observed.reports;
  const nameOf = (report) => `${report.observer}/${report.file}`;
  const names = [...reports, ...ofObservers.map(nameOf)];
  let kind = names.includes(page.query.kind) ? page.query.kind : names[0];
  const shown = h("pre.lines", { tabindex: "0", "aria-label": "The report" });
  const links = h("div.actions");
  const load = async () => {
    if (!reports.includes(kind)) {
      ofObservers = (await read(page, "observers")).reports;
      const report = ofObservers.find((one) => nameOf(one) === kind);
      put(shown, report?.content || "The report is empty.");
      put(links, h("a.button", { href: URL.createObjectURL(new Blob([report?.content ?? ""])), download: `${page.job}-${kind.replaceAll("/", "-")}` }, "Save"));
      return;
    }
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
  const options = [...reports, ...ofObservers.map((report) => [nameOf(report), `${report.observer}: ${report.file}`])];
  put(
    page.main,
    heading(page, "Reports", h("button.button", { type: "button", onclick: () => load().catch(failed) }, "Refresh")),
    h("div.toolbar", {}, chooser("Report", options, kind, change), links),
    observed.problem && h("p.form-error", {}, `Observers: ${observed.problem.message}`),
    shown,
  );
}
