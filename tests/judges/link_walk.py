"""Walks a directory of HTML by its links, with a DOM parser that is not ours (lxml), and prints what it reaches.

usage: link_walk.py HOST:PORT=DIRECTORY[/START] ...

One URL a line, sorted: every file below a directory that a chain of links from its start page reaches on the same
host. Links are what a browser would follow or load: a, area, iframe, frame, link, img, script, source.
"""

import os
import sys
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from lxml import html

LINKS = [
    ("a", "href"),
    ("area", "href"),
    ("link", "href"),
    ("iframe", "src"),
    ("frame", "src"),
    ("img", "src"),
    ("script", "src"),
    ("source", "src"),
]


def file_of(root, url):
    """The file behind a URL, or None."""
    path = unquote(urlsplit(url).path)
    if path.endswith("/"):
        path += "index.html"
    real = os.path.realpath(root + path)
    return real if os.path.isfile(real) and real.startswith(os.path.realpath(root) + os.sep) else None


def links_of(data, url):
    if not data.strip():
        return
    document = html.document_fromstring(data, parser=html.HTMLParser(encoding="utf-8"))
    base = urljoin(url, next(iter(document.xpath("//base/@href")), ""))
    for tag, attribute in LINKS:
        for value in document.xpath(f"//{tag}/@{attribute}"):
            try:
                yield urldefrag(urljoin(base, value.strip()))[0]
            except ValueError:
                pass


def normal(url):
    """The path percent-encoded as Opilio encodes it, so that both sides mean one string."""
    parts = urlsplit(url)
    path = quote(unquote(parts.path), safe="/!$&'()*+,;=:@~-._")
    return parts._replace(path=path).geturl()


def walk(authority, root, start):
    first = f"http://{authority}/{start}"
    reached, todo = {normal(first)}, [first]
    while todo:
        url = todo.pop()
        file = file_of(root, url)
        if not file.endswith((".html", ".htm")):
            continue
        with open(file, "rb") as stream:
            data = stream.read()
        for link in links_of(data, url):
            parts = urlsplit(link)
            if parts.scheme != "http" or parts.netloc != authority or parts.query:
                continue
            if normal(link) not in reached and file_of(root, link):
                reached.add(normal(link))
                todo.append(link)
    return reached


def main():
    everything = set()
    for argument in sys.argv[1:]:
        authority, directory = argument.split("=", 1)
        directory, _, start = directory.partition("//")
        everything |= walk(authority, directory, start)
    print("\n".join(sorted(everything)))


if __name__ == "__main__":
    main()
