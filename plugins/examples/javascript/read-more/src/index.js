// Opens the collapsed parts of a page before its content is taken: <details>, and buttons such as "read more". An opened part
// may contain further ones, so the plugin clicks until nothing is left.

import { click, count, decode, encode, integer, list, plugin, SettingsFault, text, waitForNetwork } from "@opilio/plugin";

/** Buttons, and links that do not lead to another page. */
const BUTTONS = "button, [role=button], a:not([href]), a[href^='#'], a[href^='javascript:']";
const CLOSED_DETAILS = "details:not([open]) > summary";
/** Longest wait for the content that a click loads, in milliseconds. */
const NETWORK_WAIT_MAX = 3000;

export default plugin({
  name: "read-more",
  summary: "Opens collapsed parts of a page, such as details and texts behind a button “read more”.",
  handles: { mediaTypes: ["text/html", "application/xhtml+xml"] },
  settings: {
    labels: list(
      text(),
      ["read more", "show more", "see more", "weiterlesen", "mehr anzeigen", "lire la suite", "leer más"],
      "Beginnings of the labels of buttons that open a part of the page. Case is ignored.",
      { overridable: true },
    ),
    "clicks-max": integer(100, "Number of clicks after which the plugin stops. The last step may exceed it.", { overridable: true, minimum: 1, maximum: 1000 }),
  },

  configure({ labels, "clicks-max": clicksMax }) {
    const empty = labels.findIndex((label) => label.trim() === "");
    if (empty >= 0) throw new SettingsFault(`/labels/${empty}`, "a label is empty; remove it");
    return { pattern: labels.length > 0 ? `^(?:${labels.map(escaped).join("|")})` : undefined, clicksMax };
  },

  step(page, _visit, memory, { pattern, clicksMax }) {
    const now = clicks(page.results);
    const total = Number(decode(memory)) + now;
    if (page.step > 0) count("clicks", now);
    if ((page.step > 0 && now === 0) || total >= clicksMax) return;
    const options = { atMost: clicksMax - total, onlyNew: true };
    const actions = [click(CLOSED_DETAILS, options)];
    if (pattern !== undefined) actions.push(click(BUTTONS, { ...options, text: pattern }));
    return { actions: [...actions, waitForNetwork(NETWORK_WAIT_MAX)], memory: encode(String(total)) };
  },
});

/** Returns the number of clicked elements in the results of a step. */
function clicks(results) {
  return results.reduce((sum, result) => sum + (result.clicked ?? 0), 0);
}

/** Returns a regular expression that matches a label. */
function escaped(label) {
  return label.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+");
}
