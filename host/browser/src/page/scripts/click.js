(selector, pattern, onlyNew, most) => {
  let expression = null;
  if (pattern !== null)
    try {
      expression = new RegExp(pattern, "iu");
    } catch (problem) {
      return { invalid: wellFormed(problem.message) };
    }
  const isVisible = (element) => {
    const box = Element.prototype.getBoundingClientRect.call(element);
    return box.width > 0 && box.height > 0 && Element.prototype.checkVisibility.call(element, { checkVisibilityCSS: true });
  };
  const fits = (element) => {
    const text = element instanceof HTMLElement ? innerText.call(element) : element.textContent;
    const words = [text, attribute(element, "aria-label"), element instanceof HTMLInputElement ? element.value : null];
    return words.some((it) => expression.test(String(it ?? "").trim()));
  };
  // This world is the same in each action on the document.
  const clicked = (globalThis.opilioClicked ??= new WeakSet());
  let number = 0;
  for (const root of roots()) {
    let found;
    try {
      found = select(root, selector);
    } catch (problem) {
      return { invalid: wellFormed(problem.message) };
    }
    for (const element of found) {
      if (number >= most) return { clicked: number };
      if (onlyNew && clicked.has(element)) continue;
      if (!isVisible(element) || (expression && !fits(element))) continue;
      clicked.add(element);
      number += 1;
      Element.prototype.scrollIntoView.call(element, { block: "center", behavior: "instant" });
      if (element instanceof HTMLElement) HTMLElement.prototype.click.call(element);
      else element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    }
  }
  return { clicked: number };
}
