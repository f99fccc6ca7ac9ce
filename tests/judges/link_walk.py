"""Follows the links in a directory of HTML, with an independent DOM parser (lxml), and prints the URLs of all files it reaches.

usage: link_walk.py HOST:PORT=DIRECTORY[/START] ...

Prints one URL per line, sorted: the files below each directory that can be reached from its start page on the same host. Links are
those that a browser follows or loads: a, area, iframe, frame, link, img, script, source.
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
    """The file of a URL, or None if there is no such file below `root`."""
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
    """The URL with its path percent-encoded as Opilio does it, so that the two lists can be compared."""
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
