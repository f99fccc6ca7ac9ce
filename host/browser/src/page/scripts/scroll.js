(how, target) => {
  const root = document.scrollingElement ?? document.documentElement;
  if (how === "element") {
    let found;
    try {
      found = roots().flatMap((root) => [...select(root, target)])[0];
    } catch (problem) {
      return { invalid: wellFormed(problem.message) };
    }
    if (!found) return "missing";
    Element.prototype.scrollIntoView.call(found, { block: "center", behavior: "instant" });
  } else {
    const top = how === "bottom" ? root.scrollHeight : how === "by" ? root.scrollTop + target : target;
    window.scrollTo({ top, behavior: "instant" });
  }
  // Observers of the page run with the next frame.
  return new Promise((go) => requestAnimationFrame(() => setTimeout(() => go("done"))));
}
