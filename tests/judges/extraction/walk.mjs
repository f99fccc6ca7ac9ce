// Common parts of the extraction judges in JavaScript. They read a list of files and write one line of JSON for each.

import { readFileSync, existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/// Calls `judge(text, file, root)` for each line `FILE\tROOT` of the input. A SyntaxError means that the file is invalid.
export function judgeAll(judge) {
  const input = readFileSync(0, "utf8");
  for (const line of input.split("\n")) {
    if (!line) continue;
    const [file, root] = line.split("\t");
    let answer;
    try {
      answer = judge(new TextDecoder("utf-8").decode(readFileSync(file)), file, root);
    } catch (fault) {
      if (!(fault instanceof SyntaxError)) throw fault;
      answer = { expected: [], fault: fault.message };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}

/// The reference without surrounding spaces, or null if a crawler cannot fetch it.
export function fetchable(value) {
  const reference = trim(value);
  if (!reference || reference.startsWith("#")) return null;
  let url;
  try {
    url = new URL(reference, "http://base.invalid/folder/page");
  } catch {
    return null;
  }
  return ["http:", "https:", "ftp:"].includes(url.protocol) ? reference : null;
}

/// The value without leading and trailing C0 controls and spaces, which the URL standard strips.
export function trim(value) {
  return value.replace(/^[\0-\x20]+|[\0-\x20]+$/g, "");
}

/// Whether a reference is the path of a file in the document's package.
export function isFile(reference, file, root) {
  let path;
  try {
    path = decodeURIComponent(reference.replace(/[?#].*$/s, ""));
  } catch {
    return false;
  }
  if (!path || path.includes("\0")) return false;
  const target = path.startsWith("/") ? join(root, path) : join(dirname(file), path);
  return existsSync(target) && statSync(target).isFile();
}

export function line(what, hop, context, value) {
  return [what, hop, context, value.replace(/\r\n?/g, "\n")].join("\t");
}
