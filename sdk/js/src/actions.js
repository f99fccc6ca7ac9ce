// Functions that make the actions of page behaviours. Times are in milliseconds.

/** Scrolls the window: `"top"`, `"bottom"`, `{ to: pixels }`, `{ by: pixels }` or `{ element: selector }`. */
export const scroll = (target = "bottom") => ({ scroll: target });

/** Clicks elements that match a CSS selector: `click(".more", { text: "more", atMost: 10, onlyNew: true })`. */
export const click = (selector, { text, atMost = 1, onlyNew = false } = {}) => ({ click: { selector, text, atMost, onlyNew } });

/** Waits until an element matches a CSS selector, for at most `atMost`. */
export const waitForSelector = (selector, atMost = 5000) => ({ "wait-for-selector": { selector, atMost } });

/** Waits until the page has no requests in flight, for at most `atMost`. */
export const waitForNetwork = (atMost = 5000) => ({ "wait-for-network": atMost });

/** Waits for a time. */
export const pause = (time) => ({ wait: time });

/** Runs the body of an async function in the page. The result is the returned value as JSON. */
export const evaluate = (script) => ({ evaluate: script });

/** Takes a screenshot of the window. */
export const screenshot = () => "screenshot";
