// Finds pages of Next.js applications that the HTML does not link, and the files of Next.js, Vite and Create React App builds.
// The build writes both into a manifest.

import { count, flag, plugin } from "@opilio/plugin";

export default plugin({
  name: "route-manifest",
  summary: "Finds pages and files in the manifests that front-end builds write.",
  handles: {
    uris: ["/_next/static/[^/]+/_buildManifest\\.js", "/\\.vite/manifest\\.json", "/asset-manifest\\.json"],
  },
  settings: {
    pages: flag(true, "Report the routes of the application as links.", { overridable: true }),
    files: flag(true, "Report scripts, style sheets and other files of the build as links.", { overridable: true }),
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

/** Reads a manifest of Next.js: a script that sets `self.__BUILD_MANIFEST`, which maps routes to files. */
function next(path, script) {
  // A function in the script often builds the map, so the script must run. It can only affect the sandbox of this call.
  const self = {};
  new Function("self", script)(self);
  const manifest = self.__BUILD_MANIFEST;
  if (typeof manifest !== "object" || manifest === null) throw new TypeError("it makes no __BUILD_MANIFEST");

  const root = path.slice(0, path.indexOf("/_next/"));
  const routes = new Set([...texts(manifest.sortedPages), ...Object.keys(manifest)].filter((name) => name.startsWith("/")));
  // Routes with `[…]` stand for many pages. Routes that begin with `/_` are parts of pages.
  const fixed = [...routes].filter((route) => !route.startsWith("/_") && !route.includes("["));
  const dynamic = [...routes].filter((route) => route.includes("["));
  if (dynamic.length > 0) count("dynamic-routes", dynamic.length);
  const files = new Set(Object.values(manifest).flatMap(texts).filter((file) => file.startsWith("static/")));
  return {
    pages: fixed.map((route) => ({ uri: root + route, context: "next/route" })),
    files: [...files].map((file) => ({ uri: `${root}/_next/${file}`, hop: "embed", context: "next/file" })),
  };
}

/** Reads a manifest of Vite, which maps sources to built files, or of Create React App, where `files` maps names to addresses. */
function assets(path, manifest) {
  if (typeof manifest !== "object" || manifest === null) throw new TypeError("it is not an object");
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

/** Returns the strings in a list; none for other values. */
const texts = (value) => (Array.isArray(value) ? value.filter((item) => typeof item === "string") : []);
