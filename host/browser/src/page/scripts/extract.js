(linksMax, uriMax, charactersMax) => {
  const all = roots();
  const links = new Map();
  let dropped = 0;
  // A page could make the answer longer than a message may be.
  let left = 8e6;
  const add = (element, name, value) => {
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
    left -= uri.href.length;
    if (links.size >= linksMax || uri.href.length > uriMax || left < 0) {
      dropped += 1;
      return;
    }
    links.set(key, { uri: wellFormed(uri.href), element: tag, attribute: name });
  };
  // Candidates are split at commas after a description or blanks; URIs may hold commas themselves.
  const candidates = (value) => [...value.matchAll(/([^\s,]\S*[^\s,])(?:\s+[^,]+)?\s*(?:,|$)/g)].map((it) => it[1]);
  for (const root of all)
    for (const element of select(root, "a, area, iframe, frame, img, source, video, audio, track, embed, object"))
      switch (element.localName) {
        case "a":
        case "area":
          add(element, "href", attribute(element, "href") ?? attribute(element, "xlink:href"));
          break;
        case "object":
          add(element, "data", attribute(element, "data"));
          break;
        default:
          add(element, "src", attribute(element, "src"));
          add(element, "poster", attribute(element, "poster"));
          for (const uri of candidates(attribute(element, "srcset") ?? "")) add(element, "srcset", uri);
      }
  const text = texts(all);
  return {
    uri: wellFormed(location.href),
    title: wellFormed(document.title ?? "").slice(0, 10000),
    links: [...links.values()],
    dropped,
    text: wellFormed(text.slice(0, charactersMax)),
    isTextCut: text.length > charactersMax,
  };
}
