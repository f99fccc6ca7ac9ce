(target, pixels) => {
  const root = document.scrollingElement ?? document.documentElement;
  const top = target === "top" ? 0 : target === "bottom" ? root.scrollHeight : root.scrollTop + pixels;
  window.scrollTo({ top, behavior: "instant" });
  // Observers of the page run with the next frame.
  return new Promise((go) => requestAnimationFrame(() => setTimeout(() => go(Math.round(root.scrollTop)))));
}
