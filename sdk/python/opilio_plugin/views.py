"""The arguments of plugins. Facts are properties. Methods copy content, or take arguments. Each view has a handle
of the contract, from the host or from a test."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from . import host
from .records import ActionResult, Candidate, ContentState, Header, KeptValue, Neighbourhood, PastVisit, Signal
from .wire import case_of, lifting

#: Largest read of `content` in one call of the host.
READ_BYTES_MAX = 8 * 1024 * 1024


def _fact(name: str, kind: Any, about: str) -> Any:
    lift = lifting(kind)
    return property(lambda view: lift(getattr(view.handle, name)()), doc=about)


class _KeptValues:
    """A handle with values that a plugin keeps from visit to visit."""

    def __init__(self, handle: Any):
        self.handle = handle

    def attribute(self, name: str) -> KeptValue | None:
        """Returns the value that this plugin last kept with the URI. Its description declares the name."""
        return lifting(KeptValue | None)(self.handle.attribute(name))

    def set_attribute(self, name: str, value: str) -> None:
        """Keeps a value with the URI. An empty value removes it."""
        self.handle.set_attribute(name, value)

    def site_value(self, name: str) -> KeptValue | None:
        """Returns the value that this plugin last kept for the site."""
        return lifting(KeptValue | None)(self.handle.site_value(name))

    def set_site_value(self, name: str, value: str) -> None:
        """Keeps a value for the site. An empty value removes it."""
        self.handle.set_site_value(name, value)

    def note(self, name: str) -> str | None:
        """Returns a note of a plugin of this visit."""
        return self.handle.note(name)


class Document(_KeptValues):
    """A response, or a fragment of one."""

    uri: str = _fact("uri", str, "The URI from which the content was fetched.")
    base: str = _fact("base", str, "The base of relative references.")
    status: int = _fact("status", int, "HTTP status, or a code of the glossary.")
    headers: list[Header] = _fact("headers", list[Header], "Every header in the order received.")
    media_type: str = _fact("media_type", str, "Media type, lower-case, without parameters.")
    charset: str | None = _fact("charset", str | None, "Label of the encoding that `text` used.")
    fragment: str | None = _fact("fragment", str | None, "Position of a fragment in its document; None for a whole document.")
    length: int = _fact("length", int, "Content length in bytes.")

    def header(self, name: str) -> list[str]:
        """Returns all values of one header, in the order received. Case of the name is ignored."""
        return self.handle.header(name)

    def read(self, offset: int, length: int) -> bytes:
        """Returns at most `length` bytes from `offset`: fewer at the end of the content, none past it."""
        return bytes(self.handle.read(offset, length))

    def content(self) -> bytes:
        """Returns the whole content, without transfer and content codings."""
        length = self.length
        if length <= READ_BYTES_MAX:
            return self.read(0, length)
        return b"".join(self.read(offset, READ_BYTES_MAX) for offset in range(0, length, READ_BYTES_MAX))

    def text(self) -> str:
        """Returns the whole content as text. Invalid bytes become U+FFFD."""
        return self.handle.text()

    def set_note(self, name: str, value: str) -> None:
        """Leaves a note for later plugins of this visit and for the metadata record."""
        self.handle.set_note(name, value)

    def annotate(self, annotation: str) -> None:
        """Adds an annotation to the document's line in the crawl log."""
        self.handle.annotate(annotation)


class Visit(_KeptValues):
    """The facts about a URI at this visit."""

    now: datetime = _fact("now", datetime, "The time of this visit. Plugins have no other clock.")
    status: int = _fact("status", int, "Fetch status of this visit; 0 before the fetch.")
    media_type: str = _fact("media_type", str, "Media type of this visit's response; at a reconsideration, of the last visit.")
    state: str = _fact("state", ContentState, "State of the content: new, changed, unchanged or unknown.")
    size: int | None = _fact("size", int | None, "Size of the content.")
    last_wait: timedelta | None = _fact("last_wait", timedelta | None, "The wait before this visit.")
    overdue: timedelta = _fact("overdue", timedelta, "Time from the due time to the beginning of this visit.")
    visits: int = _fact("visits", int, "Number of completed visits, plus this one. At a reconsideration: completed visits only.")
    versions: int = _fact("versions", int, "Number of versions.")
    history: list[PastVisit] = _fact("history", list[PastVisit], "Earlier visits, newest first.")
    outlinks: int = _fact("outlinks", int, "Number of links in the document at its last extraction.")
    inlinks: int = _fact("inlinks", int, "Number of pages of other registrable domains that embed the document.")
    signals: list[Signal] = _fact("signals", list[Signal], "News since the last visit, newest first.")
    neighbourhood: list[Neighbourhood] = _fact("neighbourhood", list[Neighbourhood], "Sums about related documents.")

    @property
    def candidate(self) -> Candidate:
        """The candidate as filters saw it at discovery."""
        return lifting(Candidate)(self.handle.candidate())

    def validator(self, name: str) -> str | None:
        """Returns a header of the last archived version: `etag` or `last-modified`."""
        return self.handle.validator(name)

    def measure(self, name: str) -> float | None:
        """Returns a value that the host computes for whole queues or crawls."""
        return self.handle.measure(name)


class Queue:
    """A queue to rank."""

    def __init__(self, handle: Any):
        self.handle = handle

    name: str = _fact("name", str, "Its name, such as `org,example,www,`.")
    queued: int = _fact("queued", int, "Number of URIs that wait in it.")
    succeeded: int = _fact("succeeded", int, "Number of successful fetches.")
    failed: int = _fact("failed", int, "Number of failed fetches.")
    bytes: int = _fact("bytes", int, "Bytes fetched.")
    best: int | None = _fact("best", int | None, "Precedence of its best waiting URI.")
    base: int = _fact("base", int, "Its precedence in the profile.")
    now: datetime = _fact("now", datetime, "The time of this call.")


class Page:
    """A page in a browser, as it was just before the call. Lengths are CSS pixels."""

    def __init__(self, handle: Any):
        self.handle = handle

    uri: str = _fact("uri", str, "The URI in the browser, with changes by scripts.")
    title: str = _fact("title", str, "Title of the document.")
    elements: int = _fact("elements", int, "Number of elements.")
    text_length: int = _fact("text_length", int, "Length of the visible text in UTF-16 code units.")
    scroll_height: int = _fact("scroll_height", int, "Height of the document.")
    scroll_top: int = _fact("scroll_top", int, "Height of the part above the window.")
    window_height: int = _fact("window_height", int, "Height of the window.")
    requests_in_flight: int = _fact("requests_in_flight", int, "Number of requests in flight.")
    time_used: timedelta = _fact("time_used", timedelta, "Time since the page was opened.")
    time_left: timedelta = _fact("time_left", timedelta, "Time until the host ends the behaviours.")
    step: int = _fact("step", int, "Number of this step; 0 is the one after loading.")
    steps_left: int = _fact("steps_left", int, "Number of steps that may follow this one.")

    def count(self, selector: str) -> int | None:
        """Returns the number of elements that match a selector of the last plan's `count`. None if the selector is invalid, and if
        the last plan did not name it."""
        return self.handle.count(selector)

    @property
    def results(self) -> list[ActionResult]:
        """Results of the last step's actions, in the same order; empty at the first step."""
        return [ActionResult(*case_of(result)) for result in self.handle.results()]


class Candidates:
    """The candidates of a call, in the order found. The host returns a column when its first value is read."""

    def __init__(self, handle: Any):
        self.handle = handle
        self._columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return self.handle.length()

    def __iter__(self) -> Iterator[Any]:
        return (_CandidateView(self, index) for index in range(len(self)))

    def in_table(self, name: str) -> list[bool]:
        """Returns True for each candidate that has a row in the table."""
        key = f"table {name}"
        if key not in self._columns:
            self._columns[key] = host.host.find_candidates(name, self.handle)
        return self._columns[key]

    def column(self, name: str) -> list[Any]:
        """Returns a column, such as `uris`."""
        if name not in self._columns:
            column = getattr(self.handle, name)()
            # A column of texts is one text with a line for each candidate.
            self._columns[name] = column.split("\n") if isinstance(column, str) else column
        return self._columns[name]


def _column(name: str, *, optional: bool = False) -> Any:
    return property(lambda view: view.all.column(name)[view.index] or (None if optional else ""))


class _CandidateView:
    """A candidate of a call, with the attributes of a `Candidate`."""

    __slots__ = ("all", "index")

    def __init__(self, all_: Candidates, index: int):
        self.all, self.index = all_, index

    uri = _column("uris")
    surt = _column("surts")
    hop_path = _column("hop_paths")
    context = _column("contexts")
    via = _column("vias", optional=True)
    via_surt = _column("via_surts", optional=True)
    source = _column("sources", optional=True)
    address = _column("addresses", optional=True)

    @property
    def seed(self) -> bool:
        return self.all.column("seeds")[self.index]

    @property
    def attributes(self) -> list[Any]:
        return lifting(Candidate)(self.all.handle.get(self.index)).attributes

    def is_in_table(self, name: str) -> bool:
        return self.all.in_table(name)[self.index]
