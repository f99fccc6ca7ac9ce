(charactersMax) => {
  const getter = (type, name) => {
    const { get } = Object.getOwnPropertyDescriptor(type.prototype, name);
    return (it) => get.call(it);
  };
  const [firstChild, nextSibling, nodeType] = ["firstChild", "nextSibling", "nodeType"].map((it) => getter(Node, it));
  const [localName, attributes] = ["localName", "attributes"].map((it) => getter(Element, it));
  const data = getter(CharacterData, "data");
  // Nothing of these is shown.
  const unseen = /^(script|style|noscript|template)$/;
  const hints = /\b(stylesheet|preload|modulepreload|prefetch|prerender|preconnect|dns-prefetch)\b/i;
  const empty = /^(area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr)$/;
  // Other ones at each visit, or set by scripts while they move things.
  const unstable = /^(nonce|integrity|style|on.*)$/;
  const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const parts = ["<!DOCTYPE html>"];
  let left = charactersMax;
  let isText = false;
  const write = (part) => {
    parts.push(part);
    left -= part.length;
    isText = false;
  };
  // Nodes, and tags to be written behind what is in their elements.
  const stack = [document];
  const add = (parent) => {
    const children = [];
    for (let child = firstChild(parent); child; child = nextSibling(child)) children.push(child);
    for (const child of children.reverse()) stack.push(child);
  };
  while (stack.length > 0 && left >= 0) {
    const node = stack.pop();
    if (typeof node === "string") {
      write(node);
      continue;
    }
    switch (nodeType(node)) {
      case Node.ELEMENT_NODE: {
        const name = localName(node);
        if (unseen.test(name) || (name === "link" && hints.test(attribute(node, "rel") ?? ""))) break;
        const written = [...attributes(node)]
          .filter((it) => !unstable.test(it.name))
          .map((it) => ` ${it.name}="${escape(it.value).replaceAll('"', "&quot;")}"`);
        write(`<${name}${written.sort().join("")}>`);
        if (empty.test(name)) break;
        stack.push(`</${name}>`);
        add(node);
        const shadow = shadowRoot.call(node);
        if (shadow) stack.push("</template>", shadow, '<template shadowrootmode="open">');
        break;
      }
      case Node.TEXT_NODE: {
        const text = escape(data(node).replace(/\s+/g, " "));
        const isBehindBlank = isText && parts.at(-1).endsWith(" ");
        const shown = isBehindBlank ? text.trimStart() : text;
        if (shown) write(shown);
        isText = true;
        break;
      }
      case Node.COMMENT_NODE:
        write(`<!--${data(node)}-->`);
        break;
      case Node.DOCUMENT_NODE:
      case Node.DOCUMENT_FRAGMENT_NODE:
        add(node);
    }
  }
  return left < 0 ? null : wellFormed(parts.join(""));
}
