"""The test plugin of the Rust SDK, with its cases. It compares the first lines of documents, takes ranks from a table, counts events,
and plans every action on a page."""

from datetime import datetime, timedelta

from opilio_plugin import (
    Candidate,
    ChangeEvaluator,
    Click,
    Comparison,
    Document,
    Evaluate,
    Finished,
    Keep,
    Line,
    Observation,
    Observer,
    Page,
    PageBehavior,
    Pause,
    Precedence,
    Queue,
    Report,
    Screenshot,
    Scroll,
    ScrollBy,
    ScrollTo,
    ScrollToElement,
    StepPlan,
    Visit,
    WaitForNetwork,
    WaitForSelector,
    table,
)
from opilio_plugin.wire import EPOCH


class Headline(ChangeEvaluator, Precedence, Observer, PageBehavior):
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

    def step(self, page: Page, visit: Visit, memory: bytes) -> StepPlan:
        if page.step == 0:
            actions = [
                Scroll("top"),
                Scroll(),
                Scroll(ScrollTo(7)),
                Scroll(ScrollBy(-7)),
                Scroll(ScrollToElement("#a")),
                Click("b"),
                Click("c", "more", at_most=5, only_new=True),
                WaitForSelector(".d", timedelta(seconds=1)),
                WaitForNetwork(timedelta(seconds=2)),
                Pause(timedelta(milliseconds=3)),
                Evaluate("return 1"),
                Screenshot(),
            ]
            return StepPlan(actions, ["h1", "h2"], bytes([1]))
        time_left = page.time_left // timedelta(milliseconds=1)
        counts = ["none" if count is None else count for count in map(page.count, ("h1", "h2"))]
        texts = [result.detail for result in page.results if result.name in ("value", "exception")]
        facts = [page.uri, page.title, page.elements, page.scroll_top, time_left, page.steps_left, *counts, *texts]
        text = " ".join(map(str, [*facts, visit.candidate.uri]))
        clicked = sum(result.clicked for result in page.results)
        return StepPlan([Evaluate(text)], memory=bytes([memory[0] + clicked]), finished=True)


plugins = [Headline]
