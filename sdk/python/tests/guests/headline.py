"""The plugin that the Rust SDK tests its kinds with, and its cases: a document is the same while its first line is; what
its URI's table says comes first; what has been seen is counted."""

from datetime import datetime

from opilio_plugin import (
    Candidate,
    ChangeEvaluator,
    Comparison,
    Document,
    Finished,
    Keep,
    Line,
    Observation,
    Observer,
    Precedence,
    Queue,
    Report,
    Visit,
    table,
)
from opilio_plugin.wire import EPOCH


class Headline(ChangeEvaluator, Precedence, Observer):
    name = "headline"
    summary = "For tests."
    keeps = [Keep("headline", "uri", 2), Keep("last-headline", "site", 1)]

    def compare(self, document: Document, visit: Visit, last: bytes | None) -> Comparison:
        headline = document.text().split("\n")[0]
        document.set_attribute("headline", headline)
        visit.set_site_value("last-headline", headline)
        fingerprint = headline.encode()
        if last is None:
            return Comparison(fingerprint=fingerprint)
        if last == fingerprint:
            return Comparison("unchanged", fingerprint, "the same headline")
        return Comparison("changed", fingerprint, "another headline")

    def rank_candidate(self, candidate: Candidate, document: Document | None) -> int | None:
        if candidate.seed:
            return 1
        if candidate.is_in_table("first"):
            row = table("first").find(candidate.surt)
            return int(row.value) if row else None
        return None if document is None else 10 + document.length

    def rank_queue(self, queue: Queue) -> int | None:
        return None if queue.best is None else max(queue.best, queue.base)

    def observe(self, memory: bytes, events: list[Finished]) -> Observation:
        seen = memory[0] if memory else 0
        return Observation(bytes([seen + len(events)]), [Line("uris.txt", event.uri) for event in events])

    def report(self, memory: bytes, now: datetime) -> list[Report]:
        milliseconds = int((now - EPOCH).total_seconds() * 1000)
        return [Report("seen.txt", f"{memory[0]} by {milliseconds}")]


plugins = [Headline]
