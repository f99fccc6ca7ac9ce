// A unified diff. Its colours only repeat the signs at the beginning of its lines.

import { h } from "./dom.js";

const KINDS = { "+": "added", "-": "removed", "@": "place" };

/** Shows a diff, or the text `same` if there is no difference. */
export function diffView(diff, label, same) {
  if (diff === "") return h("p.nothing", {}, same);
  const lines = diff.replace(/\n$/, "").split("\n");
  const isHead = (line, n) => n < 2 && /^(---|\+\+\+) /.test(line);
  return h(
    "pre.diff",
    { role: "region", "aria-label": label, tabindex: "0" },
    lines.map((line, n) => h("span", { class: isHead(line, n) ? "head" : KINDS[line[0]] }, `${line}\n`)),
  );
}
