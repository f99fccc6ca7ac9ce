// One URI: how it came here and why it is in scope, its visits, its versions, what plugins keep with it, the capture itself.

import { Answers } from "../answers.js";
import { address as addressOf, get, job as path, probe, send } from "../api.js";
import { h, id, put } from "../dom.js";
import { bytes, count, duration, utc, when, words } from "../format.js";
import { badge, chooser, fetchStatus, heading, link, queueLink, read, region, statusText, uriLink } from "../job.js";
import { ask, failed, field } from "../notice.js";
import { pictures } from "../pictures.js";
import { Table, facts } from "../table.js";

const EVERY = 3000;
const VERSIONS = 200;
const PICTURES = 12;

/** Opens the page. */
export async function open(page) {
  const { uri } = page.query;
  const buttons = h("div.actions");
  const body = h("div");
  const captured = h("div");
  const pictured = h("div");
  let shown = "";
  // The form of the URI in the logs.
  const uriInLogs = () => (shown && JSON.parse(shown).uri?.uri) || uri;
  let lastState = "";
  let archived = "";
  // Parts that have not changed are not replaced: a capture that the user views, a button that is being pressed.
  const answers = new Answers((why) => {
    const now = JSON.stringify(why);
    if (now === shown) return;
    shown = now;
    put(body, record(page, why));
    const state = `${Boolean(why.uri)} ${why.in_process}`;
    if (state !== lastState) put(buttons, actions(page, uri, why, () => load().catch(failed)));
    lastState = state;
    const version = JSON.stringify(why.uri?.archived);
    if (version !== archived) {
      put(captured, why.uri && capture(page, why.uri));
      renderedVersions(page, uriInLogs()).then((section) => put(pictured, section), failed);
    }
    archived = version;
    // The logs may have another visit.
    if (logged) logged.reload();
  });
  const load = () => answers.ask(read(page, "why", { uri }));
  let logged;
  await load();
  const [crumbs, head] = heading(page, uri, buttons);
  crumbs.append(" / ", link(page.job, "uris", {}, "URIs"));
  const explained = region("Scope, filters, waits and settings", () => explain(page, uri));
  logged = region("Log entries", () => logEntries(page, uriInLogs()));
  put(page.main, crumbs, head, body, logged.element, pictured, captured, explained.element);
  const timer = setInterval(() => document.hidden || load().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(timer));
}

function record(page, why) {
  const uri = why.uri;
  const sentence = h("p", {}, why.sentence);
  if (!uri) {
    return h(
      "section.card",
      {},
      sentence,
      why.refused &&
        facts(Object.entries(why.refused).map(([key, value]) => [words(key), typeof value === "object" ? JSON.stringify(value) : String(value)])),
    );
  }
  const history = new Table({
    caption: "Visits",
    empty: "Not visited yet.",
    key: (visit) => visit.at,
    columns: [
      { title: "When", isHead: true, cell: (visit) => when(visit.at) },
      { title: "Status", isNumber: true, cell: (visit) => fetchStatus(visit.status) },
      { title: "Content", cell: (visit) => (visit.content ? badge(visit.content) : "–") },
      { title: "Size", isNumber: true, cell: (visit) => bytes(visit.size) },
      { title: "Digest", cell: (visit) => (visit.digest ? h("code", {}, visit.digest.replace("sha1:", "")) : visit.content === "unchanged" ? "as before" : "–") },
      { title: "Next wait", isNumber: true, cell: (visit) => (visit.wait_s === undefined ? "–" : duration(visit.wait_s)) },
      { title: "Since last visit", isNumber: true, cell: (visit) => (visit.gap ? duration(visit.gap) : "–") },
    ],
  });
  const visits = uri.history ?? [];
  history.show(
    visits.map((visit, n) => ({ ...visit, gap: visits[n + 1] && (new Date(visit.at) - new Date(visits[n + 1].at)) / 1000 })),
  );
  return [
    h(
      "section.card",
      {},
      sentence,
      why.in_process && h("p", {}, badge("in-process"), " It is being fetched."),
      facts([
        ["State", [badge(uri.state), " ", uri.last_outcome && uri.last_outcome !== "open" && badge(uri.last_outcome)]],
        ["Last status", uri.status ? statusText(uri.status) : "none yet"],
        ["Refused by", why.last_refusal && refusal(why.last_refusal)],
        ["Due", uri.due && when(uri.due)],
        ["Wait", uri.wait_s !== undefined && duration(uri.wait_s)],
        ["Queue", queueLink(page.job, uri.queue)],
        ["Part of the crawl", why.part],
        ["Directive", words(uri.directive)],
        ["Precedence", uri.precedence !== undefined && count(uri.precedence)],
        ["Strategy", uri.strategy],
        ["Visits", `${count(uri.visits ?? 0)}, ${count(uri.versions ?? 0)} of them new or changed`],
        ["Media type", uri.media_type],
        ["Attempts, deferrals", (uri.attempts || uri.deferrals) && `${count(uri.attempts ?? 0)}, ${count(uri.deferrals ?? 0)}`],
      ]),
    ),
    h("section.card", {}, h("h2", {}, "Discovery"), facts([
      ["Hop path", uri.hop_path || (uri.seed ? "a seed" : "–")],
      ["Found on", uri.via && uriLink(page.job, uri.via)],
      ["Context", uri.context],
      ["Source seed", uri.source && uriLink(page.job, uri.source)],
      ["Discovered", uri.discovered && when(uri.discovered)],
      ["Canonical form", why.canonical !== uri.uri && why.canonical],
      ["Links found in it", uri.outlinks !== undefined && count(uri.outlinks)],
      ["Embedded by", uri.referrers && String(uri.referrers)],
      ["Links extracted by", uri.extractor && stackOf(why.read_by, uri.extractor), true],
    ])),
    h("section", {}, h("h2", {}, "Visits"), history.element),
    h("section.card", {}, h("h2", {}, "Digests and the archived version"), facts([
      ["Payload digest", uri.payload_digest],
      ["Stripped digest", uri.stripped_digest],
      ["Stripped by", uri.stripper && stackOf(why.stripped_by, uri.stripper), true],
      ["ETag", uri.etag],
      ["Last-Modified", uri.last_modified],
      ["Archived", uri.archived && when(uri.archived.date)],
      ["File", uri.archived && `${uri.archived.file}, offset ${count(uri.archived.offset)}`],
      ["Record ID", uri.archived?.record_id],
    ])),
    keptValues(uri.attributes),
  ];
}

// The plugins behind a record's hash of them. If the job does not know the hash, its first characters.
function stackOf(known, hash) {
  if (/^0+$/.test(hash)) return "incomplete: a plugin failed; the next visit repeats it";
  if (!known) return ["unknown stack ", h("code", {}, hash.slice(0, 8))];
  return [
    known.plugins.length > 0 ? plugins(known.plugins) : "no plugin",
    known.is_in_force === false && h("span.hint", {}, " – the stack of the job has changed since"),
  ];
}

// Each plugin: its name in the profile, its version, and its own name if that differs.
function plugins(list) {
  return list.map((one, n) => [
    n > 0 && ", ",
    h("span", { title: `component ${one.sha256.slice(0, 12)}, settings ${one.settings_sha256.slice(0, 12)}` }, h("strong", {}, one.name), ` ${one.name === one.plugin ? "" : `${one.plugin} `}${one.version}`),
    one.filters?.length > 0 && ` with filters ${one.filters.join(", ")}`,
  ]);
}

function refusal({ reason, filter, stages }) {
  if (!filter) return reason;
  const why = reason.slice(filter.length + 1);
  const where = stages?.length > 0 ? stages.map(words).join(", ") : "in no stack now";
  return [h("strong", {}, filter), ` (${where})`, why && `: ${why}`];
}

function keptValues(attributes) {
  const plugins = Object.entries(attributes ?? {});
  if (plugins.length === 0) return null;
  return h(
    "section.card",
    {},
    h("h2", {}, "Values kept by plugins"),
    plugins.map(([plugin, values]) => [
      h("h3", {}, plugin),
      facts(
        typeof values === "object" && values !== null
          ? Object.entries(values).map(([name, value]) => [name, typeof value === "object" ? JSON.stringify(value) : String(value)])
          : [["value", String(values)]],
      ),
    ]),
  );
}

// The page as archived, with its images and style sheets of the same time. Its frame is sandboxed: no scripts, no forms, no live
// web. The list of versions is loaded when the user opens the capture.
function capture(page, uri) {
  if (!uri.archived) return null;
  const holder = h("div");
  const which = h("div.toolbar", { hidden: true });
  const address = (part, at) => addressOf(path(page.job, part), { uri: uri.uri, at });
  const shown = new Answers(({ at, problem }) => {
    if (problem) return void put(holder, h("p.form-error", { role: "alert" }, problem.message));
    const named = at ? `Capture of ${uri.uri} of ${utc(at)}` : `Capture of ${uri.uri}`;
    put(
      holder,
      h("iframe.frame", { src: address("replay", at), sandbox: "", title: named, referrerpolicy: "no-referrer" }),
      h("p.hint", {}, h("a", { href: address("capture", at), target: "_blank", rel: "noreferrer" }, "Received content"), " (in a new tab)"),
    );
  });
  const look = (at) => shown.ask(probe(path(page.job, "replay"), { uri: uri.uri, at }, page.signal).then(() => ({ at }), (problem) => ({ problem })));
  const versions = async () => {
    const { captures, after, unlisted } = await get(path(page.job, "captures"), { uri: uri.uri, limit: VERSIONS }, page.signal);
    if (captures.length < 2) return;
    const label = (one) => `${utc(one.date)} – ${one.is_revisit ? "unchanged" : one.status ? statusText(one.status) : (one.media_type ?? "")}`;
    put(
      which,
      chooser("Version", [["", "last archived"], ...captures.map((one) => [endOf(one.date), label(one)])], "", look),
      after && h("p.hint", {}, `Shows the last ${count(VERSIONS)} captures.`),
      unlisted.length > 0 && h("p.hint", {}, `${count(unlisted.length)} archive files have no index; their captures are not listed.`),
    );
    which.hidden = false;
  };
  const show = h(
    "button.button",
    {
      type: "button",
      onclick: () => {
        look();
        show.remove();
        versions().catch(failed);
      },
    },
    "Show the capture",
  );
  const elsewhere = h("p.hint", {}, "Loading …");
  replayElsewhere(page, uri, elsewhere).catch(() => put(elsewhere));
  return h(
    "section.card",
    {},
    h("h2", {}, "The capture"),
    h("p.hint", {}, "As archived, with images and style sheets from the archive. Scripts do not run, and nothing is fetched from the live site."),
    h("div.actions", {}, show),
    elsewhere,
    which,
    holder,
  );
}

// Pictures of the rendered page, version by version.
async function renderedVersions(page, uri) {
  const { captures } = await get(path(page.job, "captures"), { uri: `urn:thumbnail:${uri}`, limit: PICTURES }, page.signal);
  if (captures.length === 0) return null;
  return h(
    "section.card",
    {},
    h("h2", {}, "In the browser"),
    h("p.hint", {}, "The browser window after the page was loaded and behaviours had operated it. Click a picture to enlarge it."),
    pictures(captures.map(({ date }) => ({ job: page.job, uri, at: endOf(date), caption: when(date) }))),
  );
}

// Links to replay with scripts, by other programs: pywb, if it runs, or ReplayWeb.page with a package.
async function replayElsewhere(page, uri, element) {
  const { url, command } = await read(page, "pywb");
  if (url) {
    const links = [["Replay with pywb", digitsOf(uri.archived.date)], ["all captures in pywb", "*"]];
    put(element, links.flatMap(([text, time], n) => [n > 0 && ", ", h("a", { href: `${url}${time}/${uri.uri}`, target: "_blank", rel: "noreferrer" }, text)]), " (in a new tab, with scripts)");
    return;
  }
  put(
    element,
    "To replay it with scripts, run ",
    h("code", {}, command),
    " on the daemon's machine (needs pywb), or open a package of the job on ",
    h("a", { href: "https://replayweb.page/", target: "_blank", rel: "noreferrer" }, "ReplayWeb.page"),
    ".",
  );
}

// A date as the 14 digits that pywb uses.
function digitsOf(date) {
  return new Date(date).toISOString().replaceAll(/[-:T]/g, "").slice(0, 14);
}

// The end of a second: lists have the time of a capture in seconds, so a capture of this second is not later than this.
function endOf(second) {
  return new Date(Date.parse(second) + 999).toISOString();
}

// The visits of the URI with their annotations, including those of plugins, and lines of other logs that contain the URI.
async function logEntries(page, uri) {
  const { visits, lines, is_whole } = await get(path(page.job, "mentions"), { uri }, page.signal);
  const log = (one) => link(page.job, "logs", { file: one.log, grep: uri }, one.log);
  const noted = new Table({
    caption: "Visits in the log",
    empty: "No visits in the log.",
    key: (visit) => `${visit.log} ${visit.at}`,
    columns: [
      { title: "When", isHead: true, cell: (visit) => when(visit.at) },
      { title: "Status", isNumber: true, cell: (visit) => fetchStatus(visit.status) },
      { title: "Wait set by", cell: (visit) => waitBy(visit) ?? "–" },
      { title: "Annotations", isWide: true, cell: notes },
      { title: "Log", cell: log },
    ],
  });
  noted.show(visits);
  return [
    noted.element,
    lines.length > 0 && h("h3", {}, "In other logs"),
    lines.length > 0 && h("ul.timeline", {}, lines.map((line) => h("li", {}, log(line), ": ", h("code", {}, line.text)))),
    !is_whole && h("p.hint", {}, "Only the latest entries; earlier parts of the logs were not searched."),
  ];
}

// The annotation with the wait evaluator that set the next visit. Missing if the profile set it.
const WAIT_BY = "wt-by:";

function waitBy({ annotations }) {
  return annotations.find((one) => one.startsWith(WAIT_BY))?.slice(WAIT_BY.length);
}

function notes({ annotations }) {
  const others = annotations.filter((one) => !one.startsWith(WAIT_BY));
  return others.length > 0 ? others.map((one) => [h("code", {}, one), " "]) : "–";
}

// The rest of a sentence about a wait: who decided it.
function decidedBy({ wait_s: wait, answers }) {
  const decider = answers.find((one) => one.decides);
  if (decider) return Math.abs(decider.wait_s - wait) < 0.001 ? "." : ", within the profile's limits.";
  if (answers.some((one) => one.answer === "failed")) return ", the previous wait, because a wait evaluator failed.";
  return answers.length > 0 ? ", set by the profile, because no wait evaluator answered." : ", set by the profile.";
}

const FOUND = { any: "After a visit", new: "After its first visit", unchanged: "If its next visit finds it unchanged", changed: "If its next visit finds it changed" };

async function explain(page, uri) {
  const answer = await get(path(page.job, "explain"), { uri }, page.signal);
  const filters = (title, list) =>
    h(
      "div.part",
      {},
      h("h3", {}, title),
      h(
        "ul.timeline",
        {},
        list.map((one) =>
          h("li", { class: one.decides ? (one.answer === "reject" ? "bad" : "good") : undefined }, badge(one.answer), " ", h("strong", {}, one.filter), one.reason && `: ${one.reason}`, one.decides && h("em", {}, " decides")),
        ),
      ),
    );
  const wait = (one) => [
    h("p", {}, `${FOUND[one.found] ?? one.found}: wait `, h("strong", {}, duration(one.wait_s)), decidedBy(one)),
    h(
      "ul.timeline",
      {},
      one.answers.map((answer) =>
        h(
          "li",
          { class: answer.decides ? "good" : undefined },
          badge(answer.answer),
          " ",
          h("strong", {}, answer.evaluator),
          answer.wait_s !== undefined && `: ${duration(answer.wait_s)}`,
          answer.reason && `: ${answer.reason}`,
          answer.ask_again_s !== undefined && `, reconsideration in ${duration(answer.ask_again_s)}`,
          answer.decides && h("em", {}, " decides"),
        ),
      ),
    ),
  ];
  const table = new Table({
    caption: "Settings of this URI",
    key: (setting) => setting.key,
    columns: [
      { title: "Setting", isHead: true, isWide: true, cell: (setting) => h("code", {}, setting.key) },
      { title: "Value", cell: (setting) => h("code", {}, setting.toml) },
      { title: "From", cell: (setting) => (setting.file ? `${setting.file}${setting.line ? `:${setting.line}` : ""}` : "default") },
    ],
  });
  const isExpert = h("input", { type: "checkbox", id: id("expert") });
  const shown = () => table.show(answer.settings.filter((setting) => isExpert.checked || !setting.expert || setting.file));
  isExpert.addEventListener("change", shown);
  shown();
  return [
    answer.via && h("p", {}, "As found on ", h("code", {}, answer.via), answer.hops ? `, hops ${answer.hops}.` : "."),
    h("p", {}, answer.in_scope ? "It is in scope." : "It is not in scope.", " ", answer.fetched ? "Pre-fetch filters accept it." : "Pre-fetch filters reject it.", answer.robots && ` robots.txt is ${answer.robots}.`),
    filters("Scope", answer.scope),
    answer.pre_fetch.length > 0 && filters("Pre-fetch filters", answer.pre_fetch),
    answer.waits.length > 0 && h("div.part", {}, h("h3", {}, "Next visit, by the current answers of wait evaluators"), answer.waits.map(wait)),
    h("details", {}, h("summary", {}, "Plugins of each stage"), facts(answer.stacks.map((stack) => [words(stack.stage), plugins(stack.plugins), true]))),
    h("details", {}, h("summary", {}, "All settings of this URI"), h("div.check", {}, isExpert, h("label", { for: isExpert.id }, "Include expert settings")), table.element),
  ];
}

function actions(page, uri, why, reload) {
  const post = (what, body) => send("POST", path(page.job, "uri", what), { uri, ...body });
  const button = (label, what, title, text, isDangerous = false) =>
    h(
      "button.button",
      {
        type: "button",
        class: isDangerous ? "danger" : undefined,
        "data-needs": "operator",
        onclick: () =>
          ask({
            title,
            text,
            yes: label,
            isDangerous,
            act: async () => {
              const answer = await post(what);
              reload();
              return answer?.result ?? "done";
            },
          }),
      },
      label,
    );
  const isKnown = Boolean(why.uri);
  return [
    button("Force", "force", "Fetch it now?", "The URI goes to the head of its queue, even if it is known, done or out of scope."),
    why.in_process && button("Cancel fetch", "cancel", "Cancel the fetch?", "The URI counts as failed."),
    isKnown && h("button.button", { type: "button", "data-needs": "operator", onclick: () => askPrecedence(uri, why.uri, post, reload) }, "Precedence"),
    isKnown && button("Delete", "delete", "Delete the URI?", "The URI leaves its queue and stays known, so that it is not found again.", true),
    isKnown && button("Forget", "forget", "Forget the URI?", "The record of the URI is removed, so that it may be found again.", true),
  ];
}

function askPrecedence(uri, known, post, reload) {
  const precedence = h("input", { type: "number", min: 0, max: 255, required: true, value: known.precedence ?? "" });
  ask({
    title: "Precedence of the URI",
    text: "0 goes first in its queue.",
    fields: [field("Precedence", precedence)],
    yes: "Set",
    act: async () => {
      const answer = await post("precedence", { precedence: Number(precedence.value) });
      reload();
      return answer?.result ?? "the precedence was set";
    },
  });
}
