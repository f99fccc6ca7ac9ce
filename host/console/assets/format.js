// Numbers, sizes and times for people. Times are UTC, as in logs and archives; how long ago stands beside them.
// A KiB has 1024 bytes, as everywhere in Opilio.

import { h } from "./dom.js";

const GROUPED = new Intl.NumberFormat("en-GB");

/** 1,234,567; one that is not known is a dash. */
export function count(number) {
  return Number.isFinite(number) ? GROUPED.format(Math.round(number)) : "–";
}

/** 12.3, 4.56 or 1,234: three digits that matter. */
export function rate(number) {
  if (!Number.isFinite(number)) return "–";
  const size = Math.abs(number);
  if (size >= 100 || number === 0) return GROUPED.format(Math.round(number));
  return number.toFixed(size >= 10 ? 1 : 2);
}

/** 1.2k, 3.4M: for axes. */
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

/** 12.3 % of a share between 0 and 1. */
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

/** How long ago, or in how long. */
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

/** A time that keeps saying how long ago it was; the full one stands beside it or, where it is short, in its title. */
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

/** Lets times on the page move; called every few seconds. */
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

/** Who did something; jobs write the process beside the name. */
export function person(by) {
  return String(by ?? "–").replace(/:\d+$/, "");
}

/** `in-process` as people write it. */
export function words(name) {
  return String(name ?? "–").replaceAll(/[-_]/g, " ");
}

function trimmed(number) {
  const size = Math.abs(number);
  return number.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2).replace(/\.?0+$/, (zeros) => (zeros.includes(".") ? "" : zeros));
}
