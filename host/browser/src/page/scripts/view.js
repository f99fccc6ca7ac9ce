(selectors) => {
  const allRoots = roots();
  const root = document.scrollingElement ?? document.documentElement;
  return {
    uri: wellFormed(location.href),
    title: wellFormed(document.title ?? "").slice(0, 10000),
    elements: allRoots.reduce((sum, root) => sum + select(root, "*").length, 0),
    text: visibleText(allRoots).length,
    scrollHeight: root?.scrollHeight ?? 0,
    scrollTop: Math.round(root?.scrollTop ?? 0),
    counts: selectors.map((selector) => {
      try {
        return allRoots.reduce((sum, root) => sum + select(root, selector).length, 0);
      } catch {
        return null;
      }
    }),
  };
}
