// Creates and changes elements. All content is inserted as text and never parsed as markup, because much of it comes from crawled
// sites.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: `h("a.button", { href, onclick }, "text", child, …)`. */
export function h(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length > 0) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.setAttribute("class", [element.getAttribute("class"), value].filter(Boolean).join(" "));
    else if (key === "value" && "value" in element) element.value = value;
    else if (key === "checked" && "checked" in element) element.checked = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/** Appends children; undefined, null, false and empty texts are left out. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Replaces all children. */
export function put(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** Sets an element's text if it differs, so that a selection and the reading position of a screen reader are kept. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let ids = 0;

/** A new id for an element to which others refer, such as a label. */
export function id(stem) {
  ids += 1;
  return `${stem}-${ids}`;
}

/** Has screen readers read a text, without moving the focus. */
export function announce(text) {
  setText(document.getElementById("announcement"), text);
}

/** An icon from the set below, hidden from screen readers. */
export function icon(name) {
  return s(
    "svg",
    { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" },
    s("path", { d: ICONS[name] }),
  );
}

const ICONS = {
  menu: "M2 4h12M2 8h12M2 12h12",
  pause: "M5 3v10M11 3v10",
  play: "M4.500 2.500v11l8-5.500z",
  stop: "M4 4h8v8H4z",
  copy: "M6 6h7v7H6zM3 10V3h7",
  bin: "M3 4.500h10M6.500 4V2.500h3V4M4.500 4.500l.6 9h5.800l.6-9",
  flag: "M4 14V2.500h8l-2 3 2 3H4",
  plus: "M8 3v10M3 8h10",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  help: "M5.500 6a2.500 2.500 0 1 1 3.500 2.300c-.7.300-1 .8-1 1.700M8 12.700v.2",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  out: "M6 3H3v10h3M7 8h7M11 5l3 3-3 3",
};
