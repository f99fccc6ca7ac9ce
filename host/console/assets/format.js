// Numbers, sizes and times as text. Times are UTC, as in logs and archives, with the time since then beside them.
// A KiB has 1024 bytes, as everywhere in Opilio.

import { h } from "./dom.js";

const GROUPED = new Intl.NumberFormat("en-GB");

/** 1,234,567; a dash if the number is unknown. */
export function count(number) {
  return Number.isFinite(number) ? GROUPED.format(Math.round(number)) : "–";
}

/** 12.3, 4.56 or 1,234: a rate with up to two decimals, fewer for greater numbers. */
export function rate(number) {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size >= 100 || number === 0) return GROUPED.format(Math.round(number));
  return number.toFixed(size >= 10 ? 1 : 2);
}

/** 1.2k, 3.4M, for axes. */
export function short(number) {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return `${trimmed(number / unit)}${name}`;
  }
  return trimmed(number);
}

/** 4.2 MiB. */
export function bytes(number) {
  if (!Number.isFinite(number)) return "–";
  let size = number;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? Math.round(size) : trimmed(size)} ${units[unit]}`;
}

/** A share between 0 and 1 as a percentage: 12.3 %. */
export function percent(share) {
  return Number.isFinite(share) ? `${trimmed(share * 100)} %` : "–";
}

/** 340 ms, 12 s, 3 min 20 s, 2 h 5 min, 4 d 3 h. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const sign = seconds < 0 ? "−" : "";
  const size = Math.abs(seconds);
  if (size > 0 && size < 0.001) return `${sign}${trimmed(size * 1e6)} µs`;
  if (size > 0 && size < 1) return `${sign}${trimmed(size * 1000)} ms`;
  if (size < 60) return `${sign}${trimmed(size)} s`;
  const whole = Math.round(size);
  for (const [unit, name, part, partName] of [
    [86400, "d", 3600, "h"],
    [3600, "h", 60, "min"],
    [60, "min", 1, "s"],
  ]) {
    if (whole >= unit) {
      const rest = Math.floor((whole % unit) / part);
      return `${sign}${count(Math.floor(whole / unit))} ${name}${rest > 0 ? ` ${rest} ${partName}` : ""}`;
    }
  }
  return `${sign}${whole} s`;
}

/** 2026-11-22 04:46:04 UTC. */
export function utc(time) {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return "–";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/** The time since or until `time`, such as "5 min ago". */
export function ago(time, now = Date.now()) {
  const seconds = (now - new Date(time).getTime()) / 1000;
  if (!Number.isFinite(seconds)) return "–";
  if (Math.abs(seconds) < 2) return "just now";
  const coarse = largest(Math.abs(seconds));
  return seconds < 0 ? `in ${coarse}` : `${coarse} ago`;
}

function largest(seconds) {
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= 2 * unit) return `${count(Math.floor(seconds / unit))} ${name}`;
  }
  return duration(Math.round(seconds));
}

/** A time as the time since or until then, kept up to date. The full time is beside it or, with `isShort`, in its title. */
export function when(time, { isShort = false } = {}) {
  if (!time) return "–";
  const element = h("time", { datetime: new Date(time).toISOString(), title: utc(time) });
  if (isShort) {
    element.dataset.relative = "";
    element.textContent = ago(time);
    return element;
  }
  const relative = h("span.muted", { "data-relative-to": new Date(time).toISOString() }, ago(time));
  element.textContent = utc(time);
  return h("span.when", {}, element, " ", relative);
}

/** Updates the times of `when` on the page; called every few seconds. */
export function refreshTimes(root = document) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[data-relative]")) {
    const text = ago(element.dateTime, now);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of root.querySelectorAll("[data-relative-to]")) {
    const text = ago(element.dataset.relativeTo, now);
    if (element.textContent !== text) element.textContent = text;
  }
}

/** The name of the user who did something. Jobs write the process after the name. */
export function person(by) {
  return String(by ?? "–").replace(/:\d+$/, "");
}

/** An identifier as words: `in-process` as "in process". */
export function words(name) {
  return String(name ?? "–").replaceAll(/[-_]/g, " ");
}

function trimmed(number) {
  const size = Math.abs(number);
  return number.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
}
