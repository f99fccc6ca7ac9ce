// Compares two profiles, or two versions of one, as a unified diff.

import { Answers } from "../answers.js";
import { get, profile as path } from "../api.js";
import { diffView } from "../diff.js";
import { h, put } from "../dom.js";
import { choice, field } from "../notice.js";
import { offerVersions, profilePlace } from "./profiles.js";

/** Opens the page. */
export async function open(page) {
  const { profiles } = await get("profiles", {}, page.signal);
  const names = profiles.map((profile) => profile.name);
  const selected = { profile: names[0], with: names[0], ...page.query };
  // A deleted profile still has versions.
  for (const name of [selected.profile, selected.with]) if (!names.includes(name)) names.push(name);
  const result = h("div", { role: "status" });
  const sides = [
    ["profile", "version"],
    ["with", "with_version"],
  ].map(([name, number]) => {
    const version = h("select");
    const lists = new Answers(({ versions, chosen }) => offerVersions(version, versions, chosen));
    return { name, number, profile: choice({}, names, selected[name]), version, lists };
  });
  const readVersions = (side, chosen) => {
    const list = get(path(side.profile.value, "versions"), {}, page.signal).catch(() => ({ versions: [] }));
    return side.lists.ask(list.then(({ versions }) => ({ versions, chosen })));
  };
  const differences = new Answers((shown) => put(result, shown));
  const compare = async () => {
    const query = Object.fromEntries(sides.flatMap((side) => [[side.name, side.profile.value], [side.number, side.version.value]]));
    page.remember(query);
    const { profile, ...rest } = query;
    const shown = ({ from, to, diff }) => diffView(diff, `Difference from ${from} to ${to}`, `${from} and ${to} are equal.`);
    const difference = get(path(profile, "compare"), rest, page.signal).then(shown, (problem) => h("p.form-error", {}, problem.message));
    await differences.ask(difference);
  };
  for (const side of sides) {
    side.profile.addEventListener("change", async () => {
      await readVersions(side);
      await compare();
    });
    side.version.addEventListener("change", compare);
  }
  await Promise.all(sides.map((side) => readVersions(side, selected[side.number])));
  put(
    page.main,
    h("p.crumbs", {}, h("a", { href: "#/profiles" }, "Profiles"), selected.profile === selected.with && [" / ", h("a", { href: profilePlace(selected.profile) }, selected.profile)]),
    h("div.head", {}, h("h1", {}, "Compare profiles")),
    h("div.toolbar", {}, field("From profile", sides[0].profile), field("From version", sides[0].version), field("To profile", sides[1].profile), field("To version", sides[1].version)),
    result,
  );
  await compare();
}
