"""Fails in the way that the text of the page selects."""

from dataclasses import dataclass
from datetime import datetime

from deep import deep
from opilio_plugin import DateSignal, Document, Extraction, Extractor, Fragment, Link, LinkDetails, Precedence, Span, TextAt, setting


class Faulty(Extractor, Precedence):
    name = "faulty"
    summary = "Fails on request, for tests."

    @dataclass
    class Settings:
        refuse: bool = setting(False, "Raise an exception in the constructor that is not a SettingsFault.")

    def __init__(self, settings: Settings):
        if settings.refuse:
            settings.nothing.here
        super().__init__(settings)

    def extract(self, document: Document):
        match document.text():
            case "raise":
                deep(document.uri)
            case "wrong type":
                return [Link(3)]
            case "text":
                return ["a"]
            case "no list":
                return 7
            case "hop":
                return [Link("a", hop=1)]
            case "fragment":
                return Extraction(fragments=[Fragment("text/css", TextAt(Span(-1, 2)))])
            case "date":
                return [Link("a", details=LinkDetails(dates=DateSignal(modified=datetime(2026, 1, 1))))]

    def rank_candidate(self, candidate, document):
        return 256


plugins = [Faulty]
