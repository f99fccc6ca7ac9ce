"""Compares pages by the words that their readers see. Changes of markup, scripts and styles are ignored."""

import re
from dataclasses import dataclass
from hashlib import sha256
from html.parser import HTMLParser

from opilio_plugin import ChangeEvaluator, Comparison, Document, Visit, setting

#: Elements whose content readers do not see.
INVISIBLE = {"script", "style", "template", "noscript"}
NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")


class Words(HTMLParser):
    """Collects the words outside of invisible elements."""

    def __init__(self) -> None:
        super().__init__()
        self.invisible_depth = 0
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.invisible_depth += tag in INVISIBLE

    def handle_endtag(self, tag: str) -> None:
        self.invisible_depth -= tag in INVISIBLE and self.invisible_depth > 0

    def handle_data(self, data: str) -> None:
        if not self.invisible_depth:
            self.words += data.split()


class VisibleText(ChangeEvaluator):
    name = "visible-text"
    summary = "Compares pages by the words that their readers see."
    media_types = ["text/html", "application/xhtml+xml"]

    @dataclass
    class Settings:
        numbers: bool = setting(
            True, "Compare numbers too. If false, new values of counters and times of day are not a change.", overridable=True
        )

    def __init__(self, settings: Settings):
        self.numbers = settings.numbers

    def compare(self, document: Document, visit: Visit, last: bytes | None) -> Comparison:
        parser = Words()
        parser.feed(document.text())
        parser.close()
        text = " ".join(parser.words)
        if not self.numbers:
            text = NUMBER.sub("0", text)
        fingerprint = sha256(text.encode()).digest()
        difference = None if last is None else "unchanged" if last == fingerprint else "changed"
        return Comparison(difference, fingerprint, f"{len(parser.words)} words")


plugins = [VisibleText]
