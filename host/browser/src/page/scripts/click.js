(selector, pattern, onlyNew, clicksMax) => {
  let expression = null;
  if (pattern !== null)
    try {
      expression = new RegExp(pattern, "iu");
    } catch (error) {
      return { invalid: wellFormed(error.message) };
    }
  const isVisible = (element) => {
    const box = Element.prototype.getBoundingClientRect.call(element);
    return box.width > 0 && box.height > 0 && Element.prototype.checkVisibility.call(element, { checkVisibilityCSS: true });
  };
  const matches = (element) => {
    const text = element instanceof HTMLElement ? innerText.call(element) : element.textContent;
    const texts = [text, attribute(element, "aria-label"), element instanceof HTMLInputElement ? element.value : null];
    return texts.some((it) => expression.test(String(it ?? "").trim()));
  };
  // All actions on the document run in the same world, so they share this set.
  const clicked = (globalThis.opilioClicked ??= new WeakSet());
  let clickedCount = 0;
  for (const root of roots()) {
    let found;
    try {
      found = select(root, selector);
    } catch (error) {
      return { invalid: wellFormed(error.message) };
    }
    for (const element of found) {
      if (clickedCount >= clicksMax) return { clicked: clickedCount };
      if (onlyNew && clicked.has(element)) continue;
      if (!isVisible(element) || (expression && !matches(element))) continue;
      clicked.add(element);
      clickedCount += 1;
      Element.prototype.scrollIntoView.call(element, { block: "center", behavior: "instant" });
      if (element instanceof HTMLElement) HTMLElement.prototype.click.call(element);
      else element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    }
  }
  return { clicked: clickedCount };
}
