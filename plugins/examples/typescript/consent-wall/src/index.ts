// Rejects consent walls: pages that ask for consent instead of showing their content. Banners above the content are not walls.
// A wall should not become a version in the archive, and its links should not be followed.

import { count, integer, list, map, pass, plugin, reject, SettingsFault, text, type Ruling } from "@opilio/plugin";

const HTML = ["text/html", "application/xhtml+xml"];

export default plugin({
  name: "consent-wall",
  summary: "Rejects responses that ask for consent instead of showing the page.",
  settings: {
    hosts: list(
      text(),
      ["consent.google.com", "consent.youtube.com", "consent.yahoo.com", "guce.yahoo.com"],
      "Hosts that only ask for consent. A name with a leading dot matches its subdomains.",
      { overridable: true },
    ),
    walls: map(
      text(),
      {
        "consent-form": "<form[^>]+action=[\"'][^\"']*(?:consent|cookie-?wall|collectConsent)",
        contentpass: "cp\\.contentpass\\.net",
        "pay-or-consent": "data-(?:pur|pay-or-consent|consent-wall)\\b",
        sourcepoint: "sp_message_container|sourcepoint\\.mgr",
        usercentrics: "id=[\"']usercentrics-root",
      },
      "Regular expressions that identify walls, by name. The annotation contains the name.",
      { overridable: true },
    ),
    "text-max": integer(
      1500,
      "Maximum number of characters of visible text in a wall. A page with more has content of its own.",
      { overridable: true, minimum: 0 },
    ),
  },

  configure({ hosts, walls, "text-max": textMax }) {
    const faults: SettingsFault[] = [];
    const marks = Object.entries(walls).flatMap(([name, pattern]) => {
      try {
        return [{ name, pattern: new RegExp(pattern, "i") }];
      } catch (problem) {
        faults.push(new SettingsFault(`/walls/${name}`, `invalid regular expression: ${(problem as Error).message}`));
        return [];
      }
    });
    if (faults.length > 0) throw SettingsFault.all(faults);
    return { hosts: hosts.map((host) => host.toLowerCase()), marks, textMax };
  },

  judgeDocument(document, _visit, stage, { hosts, marks, textMax }): Ruling {
    const wall = (name: string, reason: string) => {
      document.annotate(`consent-wall:${name}`);
      count("walls");
      return reject(reason);
    };
    const host = hostOf(document.uri);
    if (hosts.some((known) => host === known || (known.startsWith(".") && host.endsWith(known)))) {
      return wall(host, `${host} asks for consent`);
    }
    // There is no content yet at mid-fetch.
    if (stage === "mid-fetch" || !HTML.includes(document.mediaType)) return pass();
    const page = document.text();
    const mark = marks.find(({ pattern }) => pattern.test(page));
    if (mark === undefined) return pass();
    const length = visible(page).length;
    return length > textMax ? pass() : wall(mark.name, `consent wall ${mark.name}, ${length} characters of text`);
  },
});

/** Returns the host of a normalised URI, without user and port. */
function hostOf(uri: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:]+)/.exec(uri)?.[1] ?? "";
}

/** Returns approximately the text that a reader sees. */
function visible(page: string): string {
  return page
    .replace(/<(script|style|template|noscript)\b[^]*?<\/\1\s*>/gi, " ")
    .replace(/<!--[^]*?-->|<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}
