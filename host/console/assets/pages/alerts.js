// Alerts of a job: active and past ones.

import { Answers } from "../answers.js";
import { job as path, send } from "../api.js";
import { h, put } from "../dom.js";
import { person, when, words } from "../format.js";
import { badge, heading, read } from "../job.js";
import { done, failed } from "../notice.js";

const EVERY = 5000;

/** Opens the page. */
export async function open(page) {
  const active = h("section.card", { "aria-live": "polite" });
  const past = h("section.card");
  let last = "";
  const acknowledge = async (alert) => {
    try {
      await send("POST", path(page.job, "alerts", "acknowledge"), { kind: alert.kind, subject: alert.subject });
      done(`${words(alert.kind)}: acknowledged`);
      await load();
    } catch (problem) {
      failed(problem, "Cannot acknowledge the alert");
    }
  };
  const answers = new Answers((answer) => {
    const now = JSON.stringify(answer);
    if (now === last) return;
    last = now;
    const alerts = answer.alerts;
    const open = alerts.filter((alert) => !alert.until);
    const gone = alerts.filter((alert) => alert.until);
    put(active, h("h2", {}, "Active"), open.length === 0 ? h("p.nothing", {}, "No active alerts.") : list(open, acknowledge));
    past.hidden = gone.length === 0;
    put(past, h("h2", {}, "Past"), list(gone));
  });
  const load = () => answers.ask(read(page, "alerts"));
  await load();
  put(page.main, heading(page, "Alerts"), active, past);
  const timer = setInterval(() => document.hidden || load().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
}

function list(alerts, acknowledge) {
  return h(
    "ul.timeline",
    {},
    alerts.map((alert) =>
      h(
        "li",
        { class: alert.until ? undefined : alert.severity === "critical" ? "bad" : "warn" },
        h("strong", {}, words(alert.kind)),
        alert.subject && ` (${alert.subject})`,
        " ",
        badge(alert.severity),
        h("div", {}, alert.message),
        alert.acknowledged && h("div.hint", {}, `acknowledged by ${person(alert.acknowledged.by)} `, when(alert.acknowledged.at)),
        acknowledge && !alert.acknowledged && h("button.button", { type: "button", "data-needs": "operator", onclick: () => acknowledge(alert) }, "Acknowledge"),
        h("div.hint", {}, "since ", when(alert.since), alert.until && [", ended ", when(alert.until)]),
      ),
    ),
  );
}
