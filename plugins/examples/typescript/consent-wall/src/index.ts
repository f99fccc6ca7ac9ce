// A page that asks for consent instead of showing what was asked for: a wall, not the banner that many pages carry above
// their content. What is no content should not become a version in the archive, nor a source of links.

import { count, integer, list, map, pass, plugin, reject, SettingsFault, text, type Ruling } from "@opilio/plugin";

const HTML = ["text/html", "application/xhtml+xml"];

export default plugin({
  name: "consent-wall",
  summary: "Rejects responses that ask for consent instead of showing the page.",
  settings: {
    hosts: list(
      text(),
      ["consent.google.com", "consent.youtube.com", "consent.yahoo.com", "guce.yahoo.com"],
      "Hosts that do nothing but ask for consent; a leading dot takes in what is below.",
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
      "Marks of walls, regular expressions by name; the name is in the annotation.",
      { overridable: true },
    ),
    "text-max": integer(
      1500,
      "Characters of text above which a page with such a mark has content of its own.",
      { overridable: true, minimum: 0 },
    ),
  },

  configure({ hosts, walls, "text-max": textMax }) {
    const faults: SettingsFault[] = [];
    const marks = Object.entries(walls).flatMap(([name, pattern]) => {
      try {
        return [{ name, pattern: new RegExp(pattern, "i") }];
      } catch (problem) {
        faults.push(new SettingsFault(`/walls/${name}`, `no regular expression: ${(problem as Error).message}`));
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
    // At mid-fetch there is no content yet.
    if (stage === "mid-fetch" || !HTML.includes(document.mediaType)) return pass();
    const page = document.text();
    const mark = marks.find(({ pattern }) => pattern.test(page));
    if (mark === undefined) return pass();
    const seen = visible(page).length;
    return seen > textMax ? pass() : wall(mark.name, `consent wall ${mark.name}, ${seen} characters of text`);
  },
});

/** The host of a normalised URI, port and user left off. */
function hostOf(uri: string): string {
  return /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:]+)/.exec(uri)?.[1] ?? "";
}

/** About what a reader would see. */
function visible(page: string): string {
  return page
    .replace(/<(script|style|template|noscript)\b[^]*?<\/\1\s*>/gi, " ")
    .replace(/<!--[^]*?-->|<[^>]*>/g, " ")
    .replace(/\s+/g, " ")
    .trim();
}
