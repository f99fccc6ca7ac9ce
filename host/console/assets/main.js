// The frame around all pages: routing, the bar at the top, the message while the daemon is unreachable.
// The address of a page is in the fragment (`#`), so the daemon serves one document, and links to pages can be bookmarked.

import { announce, h, icon, put, setText } from "./dom.js";
import { ago, refreshTimes } from "./format.js";
import { help, listen, setPlaces } from "./keys.js";
import { blank } from "./notice.js";
import { askToSignIn, session } from "./session.js";
import * as admin from "./pages/admin.js";
import * as alerts from "./pages/alerts.js";
import * as compare from "./pages/compare.js";
import * as compareProfiles from "./pages/compare-profiles.js";
import * as crawlLog from "./pages/crawl-log.js";
import * as files from "./pages/files.js";
import * as frontier from "./pages/frontier.js";
import * as changes from "./pages/history.js";
import * as hosts from "./pages/hosts.js";
import * as jobs from "./pages/jobs.js";
import * as live from "./pages/live.js";
import * as logs from "./pages/logs.js";
import * as newJob from "./pages/new-job.js";
import * as overrides from "./pages/overrides.js";
import * as plugin from "./pages/plugin.js";
import * as plugins from "./pages/plugins.js";
import * as profile from "./pages/profile.js";
import * as profileEdit from "./pages/profile-edit.js";
import * as profiles from "./pages/profiles.js";
import * as queue from "./pages/queue.js";
import * as reports from "./pages/reports.js";
import * as seeds from "./pages/seeds.js";
import * as settings from "./pages/settings.js";
import * as uri from "./pages/uri.js";
import * as uris from "./pages/uris.js";

const TOP = [
  ["j", "Jobs", "#/", jobs],
  ["n", "New job", "#/new", newJob],
  ["m", "Profiles", "#/profiles", profiles],
  ["d", "Daemon", "#/daemon", admin],
];

/** Pages of a job: key, title, path, page. */
const OF_JOB = [
  ["o", "Overview", "", live],
  ["f", "Frontier", "frontier", frontier],
  ["u", "URIs", "uris", uris],
  ["t", "Hosts", "hosts", hosts],
  ["s", "Seeds", "seeds", seeds],
  ["p", "Plugins", "plugins", plugins],
  ["e", "Crawl log", "crawl-log", crawlLog],
  ["l", "Logs", "logs", logs],
  ["r", "Reports", "reports", reports],
  ["b", "Compare", "compare", compare],
  ["w", "Files", "files", files],
  ["c", "Settings", "settings", settings],
  ["v", "Overrides", "overrides", overrides],
  ["x", "Profile", "profile", profile],
  ["a", "Alerts", "alerts", alerts],
  ["h", "History", "history", changes],
];
/** Pages that are not in the bar: title, path, page, and their parent page. */
const HIDDEN = [
  ["New profile", "#/new-profile", profileEdit.create, profiles],
  ["Compare profiles", "#/compare-profiles", compareProfiles, profiles],
];
const HIDDEN_OF_JOB = { plugin, queue, uri };
const UNDER = { plugin: "plugins", queue: "frontier", uri: "uris" };
const TITLES = { plugin: "Plugin", queue: "Queue", uri: "URI" };

const main = h("main", { id: "main", tabindex: "-1" });
const topNav = h("nav", { "aria-label": "Console" });
const tabs = h("nav.tabs", { "aria-label": "Pages of the job", hidden: true });
const linkState = h("span.link-state", { role: "status" });
const away = h("div.away", { role: "status", hidden: true });
const signOut = h("button.bare", { type: "button", "aria-label": "Sign out", title: "Sign out", hidden: true, onclick: endSession }, icon("out"));
let current = null;
let redrawn = "";

function begin() {
  const theme = h("button.bare", { type: "button", "aria-label": "Change colours", title: "Change colours (t)", onclick: nextTheme }, icon("sun"));
  const keys = h("button.bare", { type: "button", "aria-label": "Keys", title: "Keys (?)", onclick: help }, icon("help"));
  put(
    document.getElementById("shell"),
    h(
      "header.bar-top",
      {},
      h("a.brand", { href: "#/" }, h("img", { src: "assets/icon.svg", alt: "" }), "Opilio"),
      topNav,
      linkState,
      h("div.tools", {}, theme, keys, signOut),
    ),
    away,
    tabs,
    main,
  );
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
  window.addEventListener("hashchange", () => show());
  window.addEventListener("stream", (event) => showStreamState(event.detail));
  window.addEventListener("signed-out", () => askToSignIn(() => current?.isOpen || show(true)));
  window.addEventListener("stream-lost", () => session.read());
  window.addEventListener("signed-in", () => (signOut.hidden = !session.canSignOut));
  listen({ theme: nextTheme });
  setInterval(() => document.hidden || refreshTimes(), 5000);
  session.read().then((isIn) => isIn && show());
}

/** Opens the page of the current address; with `isAgain` also if that page is open already. */
async function show(isAgain = false) {
  const address = location.hash || "#/";
  if (address === redrawn && !isAgain) return;
  redrawn = address;
  const [path, search = ""] = address.slice(1).split("?");
  const parts = path.split("/").filter(Boolean).map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  const found = route(parts);
  current?.controller.abort();
  const controller = new AbortController();
  const page = {
    controller,
    signal: controller.signal,
    job: found.job,
    profile: found.profile,
    query,
    main: put(main, h("p.muted", { role: "status" }, "Loading …")) && main,
    /** Changes the query in the address without opening the page again. */
    remember(changed) {
      const next = new URLSearchParams(Object.entries({ ...query, ...changed }).filter(([, value]) => value));
      Object.assign(query, changed);
      redrawn = `#${path}${[...next].length > 0 ? `?${next}` : ""}`;
      history.replaceState(null, "", redrawn);
    },
    reload: () => show(true),
  };
  current = page;
  frame(found, parts);
  document.title = [found.title, found.job ?? found.profile, "Opilio"].filter(Boolean).join(" – ");
  window.dispatchEvent(new CustomEvent("stream", { detail: { state: "none" } }));
  try {
    await found.module.open(page);
    if (current !== page) return;
    page.isOpen = true;
    const of = found.job ?? found.profile;
    announce(`${found.title}${of ? ` of ${of}` : ""}`);
    if (!isAgain) main.focus({ preventScroll: true });
  } catch (problem) {
    if (problem.name === "AbortError" || current !== page) return;
    put(main, blank(problem, () => show(true)));
  }
}

// A percent-decoded part of an address; unchanged if it has a `%` that does not begin an escape, as in addresses typed by hand.
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function route(parts) {
  if (parts[0] === "jobs" && parts[1]) {
    const [, job, name = ""] = parts;
    const known = OF_JOB.find((entry) => entry[2] === name);
    if (known) return { job, name, title: known[1], module: known[3] };
    if (HIDDEN_OF_JOB[name]) return { job, name, title: TITLES[name], module: HIDDEN_OF_JOB[name] };
  }
  if (parts[0] === "profiles" && parts[1]) return { profile: parts[1], title: "Profile", module: profileEdit, above: profiles };
  const below = HIDDEN.find((entry) => entry[1] === `#/${parts.join("/")}`);
  if (below) return { title: below[0], module: below[2], above: below[3] };
  const known = TOP.find((entry) => entry[2] === `#/${parts.join("/")}`);
  if (known) return { title: known[1], module: known[3] };
  return { title: "Not found", module: { open: (page) => put(page.main, h("h1", {}, "Page not found"), h("p", {}, h("a", { href: "#/" }, "Show jobs"))) } };
}

function frame(found) {
  put(
    topNav,
    TOP.map(([, title, href, module]) =>
      h("a", { href, "data-needs": module === newJob ? "operator" : undefined, "aria-current": module === found.module ? "page" : (found.job && module === jobs) || module === found.above ? "true" : undefined }, title),
    ),
  );
  tabs.hidden = !found.job;
  const base = `#/jobs/${encodeURIComponent(found.job ?? "")}`;
  const href = (path) => (path ? `${base}/${path}` : base);
  const at = UNDER[found.name] ?? found.name;
  put(
    tabs,
    found.job &&
      OF_JOB.map(([, title, path]) => h("a", { href: href(path), "aria-current": path === at ? (path === found.name ? "page" : "true") : undefined }, title)),
  );
  const chosen = tabs.querySelector("[aria-current]");
  if (chosen) tabs.scrollLeft = chosen.offsetLeft - tabs.clientWidth / 2;
  setPlaces([
    ...TOP.map(([key, title, to]) => [key, title, to]),
    ...(found.job ? OF_JOB.map(([key, title, path]) => [key, `${title} of the job`, href(path)]) : []),
  ]);
}

let countdown;

function showStreamState(state) {
  clearInterval(countdown);
  linkState.className = `link-state ${state.state}`;
  setText(linkState, { live: "Live", waiting: "Daemon unreachable", none: "" }[state.state]);
  linkState.hidden = state.state === "none";
  const wasAway = !away.hidden;
  away.hidden = state.state !== "waiting";
  if (state.state === "waiting") {
    const rest = h("span");
    const tick = () => setText(rest, `Trying again ${ago(state.until)}.`.replace("just now", "now"));
    tick();
    countdown = setInterval(tick, 1000);
    put(
      away,
      h("span", {}, "The daemon does not answer. Your input is kept, and crawls continue. "),
      h("span", { "aria-hidden": "true" }, rest),
      h("button.button.small", { type: "button", onclick: state.now }, "Try now"),
    );
  } else if (wasAway && state.state === "live") announce("The daemon is reachable again.");
}

function nextTheme() {
  const order = ["system", "light", "dark"];
  const root = document.documentElement;
  const next = order[(order.indexOf(root.dataset.theme ?? "system") + 1) % order.length];
  if (next === "system") delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    localStorage.setItem("opilio-theme", next);
  } catch {
    // Storage is forbidden: the colours are not remembered.
  }
  announce(`Colours: ${next}`);
}

async function endSession() {
  await session.signOut();
  signOut.hidden = true;
  askToSignIn(() => show(true));
}

begin();
