// Pages that a site of Next.js, Vite or Create React App knows and its HTML does not link: its build writes them, and the
// files they need, into a manifest that the browser loads.

import { count, flag, plugin } from "@opilio/plugin";

export default plugin({
  name: "route-manifest",
  summary: "Finds pages and files in the manifests that front-end builds write.",
  handles: {
    uris: ["/_next/static/[^/]+/_buildManifest\\.js", "/\\.vite/manifest\\.json", "/asset-manifest\\.json"],
  },
  settings: {
    pages: flag(true, "Whether routes of the application are links.", { overridable: true }),
    files: flag(true, "Whether scripts, sheets and other files of the build are links.", { overridable: true }),
  },

  extract(document, { pages, files }) {
    const [path] = document.uri.split(/[?#]/);
    let found;
    try {
      found = path.endsWith(".js") ? next(path, document.text()) : assets(path, JSON.parse(document.text()));
    } catch (problem) {
      return { problem: `the manifest cannot be read: ${problem.message}` };
    }
    return [...(pages ? found.pages : []), ...(files ? found.files : [])];
  },
});

/** Next.js: `self.__BUILD_MANIFEST = …`, from routes to files, often put together by a function that shortens them. */
function next(path, script) {
  // The script is run to get at what it makes. Nobody but this call's own sandbox could be harmed by it.
  const self = {};
  new Function("self", script)(self);
  const manifest = self.__BUILD_MANIFEST;
  if (typeof manifest !== "object" || manifest === null) throw new TypeError("it makes no __BUILD_MANIFEST");

  const root = path.slice(0, path.indexOf("/_next/"));
  const routes = new Set([...texts(manifest.sortedPages), ...Object.keys(manifest)].filter((name) => name.startsWith("/")));
  // Those with `[…]` stand for many pages, those with `_` are parts of pages.
  const fixed = [...routes].filter((route) => !route.startsWith("/_") && !route.includes("["));
  const dynamic = [...routes].filter((route) => route.includes("["));
  if (dynamic.length > 0) count("dynamic-routes", dynamic.length);
  const files = new Set(Object.values(manifest).flatMap(texts).filter((file) => file.startsWith("static/")));
  return {
    pages: fixed.map((route) => ({ uri: root + route, context: "next/route" })),
    files: [...files].map((file) => ({ uri: `${root}/_next/${file}`, hop: "embed", context: "next/file" })),
  };
}

/** Vite: from sources to what was made of each. Create React App: `files`, from names to addresses. */
function assets(path, manifest) {
  if (typeof manifest !== "object" || manifest === null) throw new TypeError("it is no object");
  const vite = path.endsWith("/.vite/manifest.json");
  const named = vite
    ? Object.values(manifest).flatMap((chunk) => [...texts([chunk?.file]), ...texts(chunk?.css), ...texts(chunk?.assets)])
    : texts(Object.values(manifest.files ?? {}));
  const root = vite ? path.slice(0, -".vite/manifest.json".length) : path;
  return {
    pages: [],
    files: [...new Set(named)].map((uri) => ({ uri, base: root, hop: "embed", context: vite ? "vite/file" : "cra/file" })),
  };
}

const texts = (value) => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : []);
