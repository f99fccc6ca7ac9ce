async (selector, milliseconds) => {
  const end = performance.now() + milliseconds;
  for (;;) {
    try {
      if (roots().some((root) => select(root, selector).length > 0)) return "found";
    } catch {
      return "invalid";
    }
    if (performance.now() >= end) return "missing";
    await new Promise((go) => setTimeout(go, 100));
  }
}
