(selector) => {
  for (const root of roots()) {
    let found;
    try {
      found = select(root, selector)[0];
    } catch {
      return "invalid";
    }
    if (!found) continue;
    found.scrollIntoView({ block: "center", behavior: "instant" });
    if (found instanceof HTMLElement) HTMLElement.prototype.click.call(found);
    else found.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    return "clicked";
  }
  return "missing";
}
