// Pages: the tree of parse5, which implements the HTML standard, is searched for URLs.
//
// The attributes with URLs are those in the standard's index of attributes; obsolete ones are from HTML 4.01, with `applet`,
// `lowsrc` and `dynsrc`. Metadata: Open Graph, Twitter cards, images of microdata.

import { parse, parseFragment } from "parse5";
import parseSrcset from "parse-srcset";
import { fetchable, isFile, judgeAll, line, trim } from "./walk.mjs";

const LINK = "L", EMBED = "E", REDIRECT = "R";

/// Attribute → elements that have it, hop type.
const URLS = {
  action: [["form"], LINK],
  background: [["body", "table", "thead", "tbody", "tfoot", "tr", "td", "th"], EMBED],
  cite: [["blockquote", "del", "ins", "q"], LINK],
  data: [["object"], EMBED],
  dynsrc: [["img"], EMBED],
  longdesc: [["frame", "iframe", "img"], LINK],
  lowsrc: [["img"], EMBED],
  manifest: [["html"], EMBED],
  poster: [["video"], EMBED],
  profile: [["head"], LINK],
  src: [["audio", "embed", "frame", "iframe", "img", "input", "script", "source", "track", "video"], EMBED],
};

/// Values of `rel` of `link` elements whose targets a page needs to be shown, or which browsers load with the page.
const EMBEDDING = new Set([
  "stylesheet", "icon", "preload", "modulepreload", "prefetch", "prerender", "manifest", "mask-icon", "apple-touch-icon",
  "apple-touch-icon-precomposed", "apple-touch-startup-image", "image_src",
]);
const NO_DOCUMENT = new Set(["dns-prefetch", "preconnect", "pingback"]);

const META_EMBEDS =
  /^(og:(image|video|audio)(:url|:secure_url)?|twitter:(image(:src)?|player:stream)|msapplication-(tileimage|(square|wide)\d+x\d+logo)|image|thumbnailurl|contenturl|logo)$/i;
const META_LINKS = /^(og:url|twitter:(url|player)|citation_.*_url|msapplication-starturl|url)$/i;

class Walk {
  constructor(file, root) {
    Object.assign(this, { file, root, expected: [], hasBase: false, formIsGet: true });
  }

  children(node) {
    for (const child of node.childNodes ?? []) this.node(child);
    if (node.content) this.children(node.content);
  }

  node(node) {
    if (node.nodeName === "#comment") {
      const conditional = /^\s*\[if[^\]]*\]>([^]*)$/.exec(node.data);
      if (conditional) this.children(parseFragment(conditional[1], { scriptingEnabled: false }));
    } else if (node.tagName) {
      this.element(node);
      this.children(node);
    }
  }

  element(node) {
    const element = node.tagName.toLowerCase();
    const isForeign = node.namespaceURI !== "http://www.w3.org/1999/xhtml";
    const attributes = new Map();
    for (const { prefix, name, value } of node.attrs) {
      attributes.set((prefix ? `${prefix}:${name}` : name).toLowerCase(), value);
    }
    const has = (name) => attributes.get(name) ?? "";
    if (element === "form") this.formIsGet = isGet(has("method"));
    for (const [name, value] of attributes) this.attribute(element, isForeign, name, value, has);

    const content = (node.childNodes ?? []).map((child) => child.value ?? "").join("");
    if (element === "script" && !attributes.has("src") && trim(content)) {
      // Only the page's own scripts read a script whose type is not a media type, such as `template`.
      const type = trim(has("type"));
      if (!type || type.includes("/") || ["module", "importmap", "speculationrules"].includes(type.toLowerCase())) {
        this.part("script", content);
      }
    }
    if (element === "style" && trim(content)) this.part("style", content);
  }

  attribute(element, isForeign, name, value, has) {
    const at = `${element}/@${name}`;
    const url = URLS[name];
    if (url && url[0].includes(element)) {
      if (name !== "action" || this.formIsGet) this.link(url[1], at, value);
    } else if (name === "href" || name === "xlink:href") {
      this.href(element, isForeign, at, value, has);
    } else if (name === "srcset" || name === "imagesrcset") {
      for (const candidate of parseSrcset(value, { console: { log() {} } })) this.link(EMBED, at, candidate.url);
    } else if (name === "ping" && ["a", "area"].includes(element)) {
      for (const word of value.split(/[\t\n\f\r ]+/)) this.link(LINK, at, word);
    } else if (name === "formaction" && ["button", "input"].includes(element)) {
      if (has("formmethod") ? isGet(has("formmethod")) : this.formIsGet) this.link(LINK, at, value);
    } else if (name === "content" && element === "meta") {
      this.meta(at, value, has);
    } else if (name === "srcdoc" && element === "iframe") {
      this.part(at, value);
    } else if (name === "style") {
      if (value.includes("(")) this.part("@style", value);
    } else if (/^on/.test(name)) {
      if (/["'`]/.test(value)) this.part(at, value);
    } else if (name.startsWith("data-") || (name === "value" && ["option", "input", "param"].includes(element))) {
      // Any data is possible here. An absolute URL, or the path of an existing file, is a reference.
      const reference = fetchable(value);
      if (reference && (/^https?:\/\/[^\s]+$/i.test(reference) || isFile(reference, this.file, this.root))) {
        this.expected.push(line("guess", "", at, reference));
      }
    }
  }

  href(element, isForeign, at, value, has) {
    if (element === "base") {
      if (!this.hasBase && fetchable(value)) {
        this.hasBase = true;
        this.link(LINK, at, value);
      }
    } else if (element === "link") {
      const words = has("rel").toLowerCase().split(/\s+/).filter(Boolean);
      if (words.some((word) => EMBEDDING.has(word))) this.link(EMBED, at, value);
      else if (words.some((word) => !NO_DOCUMENT.has(word))) this.link(LINK, at, value);
      else if (has("itemprop")) this.link(LINK, at, value);
    } else if (["a", "area"].includes(element)) {
      this.link(LINK, at, value);
    } else if (isForeign) {
      this.link(EMBED, at, value);
    }
  }

  meta(at, value, has) {
    if (trim(has("http-equiv")).toLowerCase() === "refresh") {
      const refresh = /^\s*[\d.]+(?:\s*[;,]|\s)\s*(?:url\s*=\s*)?(?:"([^"]*)|'([^']*)|(.*))/is.exec(value);
      const target = refresh && (refresh[1] ?? refresh[2] ?? refresh[3]);
      if (target) this.link(REDIRECT, at, target);
      return;
    }
    const name = has("property") || has("name") || has("itemprop");
    if (META_EMBEDS.test(name)) this.link(EMBED, at, value);
    else if (META_LINKS.test(name)) this.link(LINK, at, value);
    else if (name && /^https?:\/\/[^\s]+$/i.test(trim(value))) this.expected.push(line("guess", "", at, trim(value)));
  }

  link(hop, at, value) {
    if (/^\s*j\s*a\s*v\s*a\s*s\s*c\s*r\s*i\s*p\s*t\s*:/i.test(value)) {
      let code = value.replace(/^[^:]*:/, "");
      try {
        code = decodeURIComponent(code);
      } catch {
        // Invalid percent-encoding: the code is used as written.
      }
      if (/["'`]/.test(code)) this.part(at, code);
      return;
    }
    const reference = fetchable(value);
    if (reference) this.expected.push(line("link", hop, at, reference));
  }

  part(context, content) {
    const text = content.replace(/\r\n?/g, "\n").trim();
    const characters = Array.from(text);
    this.expected.push(line("part", "", context, `${characters.length} ${characters.slice(0, 60).join("")}`));
  }
}

function isGet(method) {
  return !["post", "dialog"].includes(trim(method).toLowerCase());
}

judgeAll((text, file, root) => {
  const walk = new Walk(file, root);
  walk.children(parse(text, { scriptingEnabled: false }));
  return { expected: walk.expected };
});
