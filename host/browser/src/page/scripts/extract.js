(linksMax, uriMax, charactersMax) => {
  const allRoots = roots();
  const links = new Map();
  let dropped = 0;
  // Limits the total length of the URIs, so that the answer does not exceed the maximum length of a message.
  let charactersLeft = 8e6;
  const addLink = (element, name, value) => {
    if (!value) return;
    let uri;
    try {
      uri = new URL(value.trim(), document.baseURI);
    } catch {
      return;
    }
    if (!/^(https?|ftps?):$/.test(uri.protocol)) return;
    const tag = element.localName;
    const key = `${tag} ${name} ${uri.href}`;
    if (links.has(key)) return;
    charactersLeft -= uri.href.length;
    if (links.size >= linksMax || uri.href.length > uriMax || charactersLeft < 0) {
      dropped += 1;
      return;
    }
    links.set(key, { uri: wellFormed(uri.href), element: tag, attribute: name });
  };
  // The URIs of a srcset. A comma within a URI does not separate candidates.
  const srcsetUris = (value) => [...value.matchAll(/([^\s,]\S*[^\s,])(?:\s+[^,]+)?\s*(?:,|$)/g)].map((it) => it[1]);
  for (const root of allRoots)
    for (const element of select(root, "a, area, iframe, frame, img, source, video, audio, track, embed, object"))
      switch (element.localName) {
        case "a":
        case "area":
          addLink(element, "href", attribute(element, "href") ?? attribute(element, "xlink:href"));
          break;
        case "object":
          addLink(element, "data", attribute(element, "data"));
          break;
        default:
          addLink(element, "src", attribute(element, "src"));
          addLink(element, "poster", attribute(element, "poster"));
          for (const uri of srcsetUris(attribute(element, "srcset") ?? "")) addLink(element, "srcset", uri);
      }
  const text = visibleText(allRoots);
  return {
    uri: wellFormed(location.href),
    title: wellFormed(document.title ?? "").slice(0, 10000),
    links: [...links.values()],
    dropped,
    text: wellFormed(text.slice(0, charactersMax)),
    isTextCut: text.length > charactersMax,
  };
}
