// The logs of a job: their last lines, followed as they grow, and searched by text or regular expression.

import { get, job as path } from "../api.js";
import { h, id, put, setText } from "../dom.js";
import { bytes, count } from "../format.js";
import { chooser, heading, link, read, statusText, uriLink } from "../job.js";
import { failed, field } from "../notice.js";

const EVERY = 2000;
const LINES_MAX = 2000;

/** Opens the page. */
export async function open(page) {
  const { query } = page;
  const { logs } = await read(page, "logs");
  if (logs.length === 0) {
    put(page.main, heading(page, "Logs"), h("p.nothing", {}, "No logs yet."));
    return;
  }
  const names = logs.map((log) => log.name);
  let file = names.includes(query.file) ? query.file : names.includes("crawl.log") ? "crawl.log" : names[0];
  const shown = h("pre.lines", { tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Lines of the log" });
  const note = h("p.muted", { role: "status" });
  const grep = h("input", { type: "search", "data-search": true, value: query.grep ?? "", spellcheck: "false", autocapitalize: "off", autocomplete: "off" });
  const tail = h("input", { type: "number", min: 10, max: LINES_MAX, value: query.tail ?? 200 });
  const isFollowed = h("input", { type: "checkbox", checked: query.follow !== "no", id: id("follow") });
  const isWrapped = h("input", { type: "checkbox", id: id("wrap"), onchange: () => shown.classList.toggle("is-wrapped", isWrapped.checked) });
  const isExpression = h("input", { type: "checkbox", checked: query.regex === "yes", id: id("regex") });
  let last = "";
  // The offset in the file at which the shown lines begin and, for earlier pages, at which they end.
  let start = 0;
  let before;
  let asked = 0;

  const load = async () => {
    const mine = ++asked;
    const text = grep.value;
    const pattern = text === "" ? undefined : isExpression.checked ? text : text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const question = `${file} ${pattern} ${tail.value} ${before}`;
    const answer = await get(path(page.job, "logs", file), { tail: Math.min(Number(tail.value) || 200, LINES_MAX), grep: pattern, before }, page.signal).catch((problem) => {
      if (mine === asked) throw problem;
    });
    // Answers to earlier requests may come later than this one.
    if (mine !== asked) return;
    const lines = answer.lines.map((line) => line.text);
    start = answer.start;
    const now = `${question}\n${lines.join("\n")}`;
    if (now === last) return;
    last = now;
    const isAtEnd = shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 30;
    put(shown, lines.flatMap((line) => [marked(line, pattern).map((part) => (typeof part === "string" ? linked(page.job, file, part) : part)), "\n"]));
    earlier.disabled = start === 0;
    latest.hidden = before === undefined;
    if (isFollowed.checked || isAtEnd) shown.scrollTop = shown.scrollHeight;
    setText(note, lines.length === 0 ? (pattern ? "No matching lines." : "The log is empty.") : `${count(lines.length)} lines${pattern ? " that match" : ""}${before === undefined ? ", the last ones" : ""}`);
  };
  // An invalid pattern is reported at its field until it is changed. Earlier lines are removed: they do not match it.
  const showInvalidPattern = (problem) => {
    if (problem.status !== 422) throw problem;
    last = "";
    put(shown);
    earlier.disabled = true;
    latest.hidden = before === undefined;
    setText(note, problem.message);
  };
  const turn = (to) => {
    before = to;
    load().catch(showInvalidPattern).catch(failed);
  };
  const earlier = h("button.button", { type: "button", onclick: () => turn(start) }, "Earlier");
  const latest = h("button.button", { type: "button", hidden: true, onclick: () => turn(undefined) }, "Latest");
  const change = () => {
    before = undefined;
    page.remember({
      file,
      grep: grep.value,
      tail: tail.value === "200" ? "" : tail.value,
      follow: isFollowed.checked ? "" : "no",
      regex: isExpression.checked ? "yes" : "",
    });
    load().catch(showInvalidPattern).catch(failed);
  };
  let timer;
  grep.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(change, 350);
  });
  for (const control of [tail, isFollowed, isExpression]) control.addEventListener("change", change);

  await load().catch(showInvalidPattern);
  const searched = field("Lines with", grep);
  searched.classList.add("grow");
  put(
    page.main,
    heading(page, "Logs"),
    h(
      "div.toolbar",
      {},
      chooser("Log", logs.map((log) => [log.name, `${log.name} (${bytes(log.size)})`]), file, (value) => {
        file = value;
        change();
      }),
      searched,
      h("div.check", {}, isExpression, h("label", { for: isExpression.id }, "Regular expression")),
      field("Lines", tail),
      h("div.check", {}, isFollowed, h("label", { for: isFollowed.id }, "Follow")),
      h("div.check", {}, isWrapped, h("label", { for: isWrapped.id }, "Wrap")),
    ),
    shown,
    h("div.actions", {}, earlier, latest, note),
  );
  shown.scrollTop = shown.scrollHeight;
  const follower = setInterval(() => isFollowed.checked && before === undefined && !document.hidden && load().catch(() => undefined), EVERY);
  page.signal.addEventListener("abort", () => clearInterval(follower));
}

// A line of a log in which URIs are links to their pages. In crawl.log the fetch status is a link to the URIs with that status.
function linked(job, file, text) {
  const status = file.startsWith("crawl.log") ? text.match(/^(\S+ +)(-?\d+)(?= )/) : null;
  const named = (number) => {
    const element = link(job, "uris", { status: number }, number);
    element.title = statusText(number);
    return element;
  };
  const head = status ? [status[1], named(status[2])] : [];
  const rest = text.slice(status?.[0].length ?? 0);
  const parts = rest.split(/((?:https?|ftps?|dns|whois):[^\s"<>]+)/);
  return [head, parts.map((part, n) => (n % 2 === 1 ? uriLink(job, part) : part))];
}

// The line with its matches marked. A regular expression that is invalid in JavaScript is not marked.
function marked(line, pattern) {
  if (!pattern) return [line];
  let expression;
  try {
    expression = new RegExp(pattern, "g");
  } catch {
    return [line];
  }
  const parts = [];
  let end = 0;
  for (const match of line.matchAll(expression)) {
    if (match[0] === "") continue;
    parts.push(line.slice(end, match.index), h("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(line.slice(end));
  return parts;
}
