(charactersMax) => {
  const getter = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return (it) => get.call(it);
  };
  const [firstChild, nextSibling, nodeType] = ["firstChild", "nextSibling", "nodeType"].map((it) => getter(Node, it));
  const [localName, attributes] = ["localName", "attributes"].map((it) => getter(Element, it));
  const data = getter(CharacterData, "data");
  // Elements whose content is not shown.
  const hiddenElements = /^(script|style|noscript|template)$/;
  const resourceHints = /\b(stylesheet|preload|modulepreload|prefetch|prerender|preconnect|dns-prefetch)\b/i;
  const voidElements = /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/;
  // Attributes that differ at each visit, or that scripts change during animations.
  const unstableAttributes = /^(nonce|integrity|style|on.*)$/;
  const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const parts = ["<!DOCTYPE html>"];
  let charactersLeft = charactersMax;
  let isText = false;
  const write = (part) => {
    parts.push(part);
    charactersLeft -= part.length;
    isText = false;
  };
  // Nodes to write, and end tags to write after the content of their elements.
  const stack = [document];
  const pushChildren = (parent) => {
    const children = [];
    for (let child = firstChild(parent); child; child = nextSibling(child)) children.push(child);
    for (const child of children.reverse()) stack.push(child);
  };
  while (stack.length > 0 && charactersLeft >= 0) {
    const node = stack.pop();
    if (typeof node === "string") {
      write(node);
      continue;
    }
    switch (nodeType(node)) {
      case Node.ELEMENT_NODE: {
        const name = localName(node);
        if (hiddenElements.test(name) || (name === "link" && resourceHints.test(attribute(node, "rel") ?? ""))) break;
        const attributeTexts = [...attributes(node)]
          .filter((it) => !unstableAttributes.test(it.name))
          .map((it) => ` ${it.name}="${escape(it.value).replaceAll('"', "&quot;")}"`);
        write(`<${name}${attributeTexts.sort().join("")}>`);
        if (voidElements.test(name)) break;
        stack.push(`</${name}>`);
        pushChildren(node);
        const shadow = shadowRoot.call(node);
        if (shadow) stack.push("</template>", shadow, '<template shadowrootmode="open">');
        break;
      }
      case Node.TEXT_NODE: {
        const text = escape(data(node).replace(/\s+/g, " "));
        const followsSpace = isText && parts.at(-1).endsWith(" ");
        const shown = followsSpace ? text.trimStart() : text;
        if (shown) write(shown);
        isText = true;
        break;
      }
      case Node.COMMENT_NODE:
        write(`<!--${data(node)}-->`);
        break;
      case Node.DOCUMENT_NODE:
      case Node.DOCUMENT_FRAGMENT_NODE:
        pushChildren(node);
    }
  }
  return charactersLeft < 0 ? null : wellFormed(parts.join(""));
}
