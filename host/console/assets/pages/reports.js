// Current reports of a job: those of the crawl, and those of observers.

import { Answers } from "../answers.js";
import { address, job as path, text } from "../api.js";
import { h, put } from "../dom.js";
import { chooser, heading, read } from "../job.js";
import { failed } from "../notice.js";

/** Opens the page. */
export async function open(page) {
  const [{ reports }, observed] = await Promise.all([
    read(page, "reports"),
    // The reports of the crawl are shown even if an observer fails.
    read(page, "observers").catch((problem) => ({ reports: [], problem })),
  ]);
  const ofObservers = observed.reports;
  const nameOf = (report) => `${report.observer}/${report.file}`;
  const names = [...reports, ...ofObservers.map(nameOf)];
  let kind = names.includes(page.query.kind) ? page.query.kind : names[0];
  const shown = h("pre.lines", { tabindex: "0", "aria-label": "The report" });
  const links = h("div.actions");
  const contents = new Answers(({ kind, content }) => {
    put(shown, content || "The report is empty.");
    if (!reports.includes(kind)) {
      put(links, h("a.button", { href: URL.createObjectURL(new Blob([content])), download: `${page.job}-${kind.replaceAll("/", "-")}` }, "Save"));
      return;
    }
    put(
      links,
      h("a.button", { href: address(path(page.job, "reports", kind), { format: "text" }), download: `${page.job}-${kind}.txt` }, "Save as text"),
      h("a.button", { href: address(path(page.job, "reports", kind), { format: "json" }), download: `${page.job}-${kind}.json` }, "Save as JSON"),
    );
  });
  const contentOf = async (kind) => {
    if (reports.includes(kind)) return { kind, content: await text(path(page.job, "reports", kind), { format: "text" }, page.signal) };
    const answer = await read(page, "observers");
    return { kind, content: answer.reports.find((one) => nameOf(one) === kind)?.content ?? "" };
  };
  const load = () => contents.ask(contentOf(kind));
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
