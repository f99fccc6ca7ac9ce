"""Preprocessor of mdBook: pages from outside docs/, and links that lead out of it.

docs/SUMMARY.md names pages such as ../plugins/scope/README.md. mdBook would write them outside the book. This script gives
them a path inside it and adapts the links of all pages. A link to a file that is not in the book becomes plain text, because
the book has no address of the repository.
"""

import json
import posixpath
import re
import sys

LINK = re.compile(r"(`[^`]*`)|(!?)\[((?:[^\[\]`]|`[^`]*`)*)\]\(([^()\s]+)\)")


def chapters(items):
    """All chapters, also those within chapters."""
    for item in items:
        if isinstance(item, dict) and "Chapter" in item:
            yield item["Chapter"]
            yield from chapters(item["Chapter"]["sub_items"])


def source(chapter):
    """The path of a page from the root of the repository."""
    return posixpath.normpath(posixpath.join("docs", chapter["source_path"]))


def place(path):
    """The path of a page in the book: docs/URIS.md is URIS.md, plugins/scope/README.md is plugins-scope.md."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path.removesuffix("/README.md").removesuffix(".md").replace("/", "-").lower() + ".md"


def adapted(content, path, places):
    """The text of a page with links for its place in the book."""
    here = posixpath.dirname(places[path])

    def link(found):
        code, mark, text, target = found.groups()
        file, hash_mark, anchor = (target or "").partition("#")
        if code or not file or "://" in file or file.startswith("mailto:"):
            return found[0]
        to = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if to not in places and (to.endswith(".md") or not to.startswith("docs/")):
            return text if "`" in text or mark else f"{text} (`{to}`)"
        return f"{mark}[{text}]({posixpath.relpath(places.get(to) or place(to), here or '.')}{hash_mark}{anchor})"

    lines, fence = [], None
    for line in content.split("\n"):
        start = re.match(r"\s*(```|~~~)", line)
        if start and fence in (None, start[1]):
            fence = None if fence else start[1]
        lines.append(line if fence or start else LINK.sub(link, line))
    return "\n".join(lines)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    pages = [page for page in chapters(book["items"]) if page.get("source_path")]
    places = {source(page): place(source(page)) for page in pages}
    # mdBook writes the introduction, README.md, as index.html.
    places["docs/README.md"] = "index.md"
    for page in pages:
        path = source(page)
        page["content"] = adapted(page["content"], path, places)
        page["path"] = places[path]
    json.dump(book, sys.stdout)


main()
