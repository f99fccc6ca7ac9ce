(mode, target) => {
  const root = document.scrollingElement ?? document.documentElement;
  if (mode === "element") {
    let found;
    try {
      found = roots().flatMap((root) => [...select(root, target)])[0];
    } catch (error) {
      return { invalid: wellFormed(error.message) };
    }
    if (!found) return "missing";
    Element.prototype.scrollIntoView.call(found, { block: "center", behavior: "instant" });
  } else {
    const top = mode === "bottom" ? root.scrollHeight : mode === "by" ? root.scrollTop + target : target;
    window.scrollTo({ top, behavior: "instant" });
  }
  // The page's observers run in the next frame.
  return new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve("done"))));
}
