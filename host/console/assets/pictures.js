// Thumbnails of rendered pages, from the archive. A page without an archived picture has a note instead.

import { address, job as path } from "./api.js";
import { h } from "./dom.js";

/** A list of pictures, each `{ job, uri, at, caption }`. */
export function pictures(list) {
  return h("ul.pictures", {}, list.map(picture));
}

/** An entry of such a list. Without `at` it shows the last picture of the page. */
export function picture({ job, uri, at, caption }) {
  const of = (kind) => address(path(job, "capture"), { uri: `urn:${kind}:${uri}`, at });
  const image = h("img", { src: of("thumbnail"), alt: `Window of ${uri}`, loading: "lazy" });
  const holder = h("a.picture", { href: of("view"), target: "_blank", rel: "noreferrer" }, image);
  image.addEventListener("error", () => holder.replaceWith(h("p.picture.muted", {}, "No picture archived")));
  return h("li", {}, h("figure", {}, holder, h("figcaption", {}, caption)));
}
