async (selector, milliseconds) => {
  const deadline = performance.now() + milliseconds;
  for (;;) {
    try {
      if (roots().some((root) => select(root, selector).length > 0)) return "found";
    } catch (error) {
      return { invalid: wellFormed(error.message) };
    }
    if (performance.now() >= deadline) return "missing";
    // Each check visits all elements, and large pages have many.
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
