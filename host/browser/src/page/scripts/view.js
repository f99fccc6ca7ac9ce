(selectors) => {
  const all = roots();
  const root = document.scrollingElement ?? document.documentElement;
  return {
    uri: wellFormed(location.href),
    title: wellFormed(document.title ?? "").slice(0, 10000),
    elements: all.reduce((sum, root) => sum + select(root, "*").length, 0),
    text: texts(all).length,
    scrollHeight: root?.scrollHeight ?? 0,
    scrollTop: Math.round(root?.scrollTop ?? 0),
    counts: selectors.map((selector) => {
      try {
        return all.reduce((sum, root) => sum + select(root, selector).length, 0);
      } catch {
        return null;
      }
    }),
  };
}
