async (selector, milliseconds) => {
  const end = performance.now() + milliseconds;
  for (;;) {
    try {
      if (roots().some((root) => select(root, selector).length > 0)) return "found";
    } catch (problem) {
      return { invalid: wellFormed(problem.message) };
    }
    if (performance.now() >= end) return "missing";
    // Each look passes all elements, which are many on large pages.
    await new Promise((go) => setTimeout(go, 100));
  }
}
