// Requests to the daemon's API. Every error is a `Problem`, so that pages show all errors in the same way.

const BASE = new URL("../api/v1/", import.meta.url);

/** An error: the daemon's problem document (RFC 9457), or one made here if the daemon did not answer. */
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail || document.title || `the daemon answered ${status}`);
    this.status = status;
    this.faults = document.faults ?? document.errors ?? [];
  }

  /** The daemon did not answer at all. */
  get isUnreachable() {
    return this.status === 0;
  }
}

/** The URL of an API path with its query, for requests, links and frames. Empty query values are left out. */
export function address(path, query = {}) {
  const url = new URL(path, BASE);
  for (const [key, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(key, value);
  }
  return url;
}

/** The API path of a job, or of a part of it. */
export function job(name, ...rest) {
  return ["jobs", name, ...rest].map((part) => encodeURIComponent(part)).join("/");
}

/** Reads a JSON document. */
export function get(path, query, signal) {
  return call("GET", path, { query, signal });
}

/** Reads a plain text. */
export function text(path, query, signal) {
  return call("GET", path, { query, signal, accept: "text/plain" });
}

/** Requests a document and discards its body. Fails as a read would: a frame that shows the document cannot report its errors. */
export function probe(path, query, signal) {
  return call("GET", path, { query, signal, accept: "*/*", isRead: false });
}

/** Sends a request that changes something; resolves to the answer. */
export function send(method, path, body, query, headers) {
  return call(method, path, { body, query, more: headers });
}

/** The API path of a profile, or of a part of it. */
export function profile(name, ...rest) {
  return ["profiles", name, ...rest].map((part) => encodeURIComponent(part)).join("/");
}

async function call(method, path, { query, body, signal, accept = "application/json", isRead = true, more = {} }) {
  const headers = { accept, ...more };
  if (body !== undefined) headers["content-type"] = "application/json";
  let response;
  try {
    response = await fetch(address(path, query), {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { title: "the daemon cannot be reached; check whether the action was carried out before you try again" });
  }
  const kind = response.headers.get("content-type") ?? "";
  const isJson = kind.includes("json");
  if (!response.ok) {
    const document = isJson ? await response.json().catch(() => ({})) : {};
    if (response.status === 401) window.dispatchEvent(new Event("signed-out"));
    throw new Problem(response.status, document);
  }
  if (!isRead) return void response.body?.cancel();
  if (response.status === 204) return null;
  return isJson && accept === "application/json" ? response.json() : response.text();
}
