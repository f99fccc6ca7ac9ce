const select = (root, selector) =>
  (root instanceof Document ? Document : DocumentFragment).prototype.querySelectorAll.call(root, selector);
const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
const shadowRoot = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot").get;
// The document and its open shadow roots.
const roots = () => {
  const found = [document];
  for (const root of found)
    for (const element of select(root, "*")) {
      const shadow = shadowRoot.call(element);
      if (shadow) found.push(shadow);
    }
  return found;
};
const innerText = Object.getOwnPropertyDescriptor(HTMLElement.prototype, "innerText").get;
// The visible text of the document and its open shadow roots.
const visibleText = (allRoots) =>
  allRoots.flatMap((root) => {
    const parts = root instanceof Document ? [...select(root, "body")].slice(0, 1) : [...root.children];
    return parts.filter((part) => part instanceof HTMLElement && !/^(STYLE|SCRIPT|TEMPLATE)$/.test(part.tagName))
      .map((part) => innerText.call(part));
  }).filter((text) => text.trim() !== "").join("\n");
// Replaces lone surrogates, which are invalid in UTF-8.
const wellFormed = (text) => String(text).toWellFormed();
