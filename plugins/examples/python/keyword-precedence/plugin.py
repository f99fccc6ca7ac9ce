"""Ranks links from pages about a subject first. The content of fetched pages thus directs a focused crawl."""

import re
from dataclasses import dataclass

from opilio_plugin import (
    Candidate,
    Candidates,
    Document,
    Precedence,
    SettingsFault,
    SettingsFaults,
    count,
    setting,
)

#: Media types besides `text/*` whose text the plugin searches for keywords.
TEXTS = ("application/xhtml+xml", "application/xml", "application/json", "application/rss+xml", "application/atom+xml")


class KeywordPrecedence(Precedence):
    name = "keyword-precedence"
    summary = "Ranks links by keywords, in the page they were found on and in their own address."

    @dataclass
    class Settings:
        keywords: list[str] = setting(
            description="Words and phrases of the subject. Case is ignored.",
            overridable=True,
            minItems=1,
        )
        in_address: int = setting(
            1, "Precedence of links whose own address has a keyword.", overridable=True, minimum=1, maximum=255
        )
        on_page: int = setting(
            2, "Precedence of links found on a page that has enough keywords.", overridable=True, minimum=1, maximum=255
        )
        otherwise: int = setting(
            5,
            "Precedence of all other links. 0 leaves it to the next plugin.",
            overridable=True,
            minimum=0,
            maximum=255,
        )
        enough: int = setting(
            1, "Number of keyword occurrences that make a page about the subject.", overridable=True, minimum=1
        )
        whole_words: bool = setting(True, "Keywords match only whole words, not parts of words.", overridable=True)

    def __init__(self, settings: Settings):
        faults = [
            SettingsFault(f"/keywords/{index}", "blank; write a word or a phrase")
            for index, keyword in enumerate(settings.keywords)
            if not keyword.strip()
        ]
        if faults:
            raise SettingsFaults.of(faults)
        phrases = ["\\s+".join(map(re.escape, keyword.split())) for keyword in settings.keywords]
        edge = ("(?<!\\w)", "(?!\\w)") if settings.whole_words else ("", "")
        self.on_pages = re.compile(f"{edge[0]}(?:{'|'.join(phrases)}){edge[1]}", re.IGNORECASE)
        # Characters other than letters and digits join words in addresses: /folk-dance, /folk_dance, /folk%20dance.
        joined = ["(?:[^a-z0-9]|%20)*".join(map(re.escape, keyword.split())) for keyword in settings.keywords]
        edge = ("(?<![^\\W_])", "(?![^\\W_])") if settings.whole_words else ("", "")
        self.in_addresses = re.compile(f"{edge[0]}(?:{'|'.join(joined)}){edge[1]}", re.IGNORECASE)
        self.settings = settings

    def rank_candidates(self, candidates: Candidates, document: Document | None) -> list[int | None]:
        if document is None:
            # Seeds have no page. Seeds without a keyword in their address are left to the next plugin.
            on_page = None
        elif self.is_about(document):
            on_page = self.settings.on_page
        else:
            on_page = self.settings.otherwise or None
        return [self.rank_by_address(candidate, on_page) for candidate in candidates]

    def rank_by_address(self, candidate: Candidate, on_page: int | None) -> int | None:
        if not self.in_addresses.search(candidate.uri):
            return on_page
        count("in-address")
        return min(self.settings.in_address, on_page or 255)

    def is_about(self, page: Document) -> bool:
        if not page.media_type.startswith("text/") and page.media_type not in TEXTS:
            return False
        matches = self.on_pages.finditer(page.text())
        about = any(number >= self.settings.enough for number, _ in enumerate(matches, 1))
        if about:
            count("pages")
            page.annotate("keywords")
        return about


plugins = [KeywordPrecedence]
