"""What plugins are asked about, as they read it: facts are properties, what costs a copy of the content is a method. Each
view stands before a handle of the contract, the host's or a test's."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from . import host
from .records import Candidate, ContentState, Header, KeptValue, Neighbourhood, PastVisit, Signal
from .wire import raising

#: Largest single read of `content`; bounds one call's copy.
READ_BYTES_MAX = 8 * 1024 * 1024


def _fact(name: str, kind: Any, about: str) -> Any:
    turn = raising(kind)
    return property(lambda view: turn(getattr(view.handle, name)()), doc=about)


class _Keeping:
    """A handle with values that a plugin keeps from visit to visit."""

    def __init__(self, handle: Any):
        self.handle = handle

    def attribute(self, name: str) -> KeptValue | None:
        """What this plugin last kept with the URI under a name that its description declares."""
        return raising(KeptValue | None)(self.handle.attribute(name))

    def set_attribute(self, name: str, value: str) -> None:
        """Keeps a value with the URI; an empty one removes it."""
        self.handle.set_attribute(name, value)

    def site_value(self, name: str) -> KeptValue | None:
        """What this plugin last kept for the site."""
        return raising(KeptValue | None)(self.handle.site_value(name))

    def set_site_value(self, name: str, value: str) -> None:
        """Keeps a value for the site; an empty one removes it."""
        self.handle.set_site_value(name, value)

    def note(self, name: str) -> str | None:
        """A note that a plugin of this visit left."""
        return self.handle.note(name)


class Document(_Keeping):
    """A response, or a fragment of one."""

    uri: str = _fact("uri", str, "The URI it was fetched from.")
    base: str = _fact("base", str, "What its relative references resolve against.")
    status: int = _fact("status", int, "HTTP status, or a code of the glossary.")
    headers: list[Header] = _fact("headers", list[Header], "Every header in the order received.")
    media_type: str = _fact("media_type", str, "Media type, lower-case, without parameters.")
    charset: str | None = _fact("charset", str | None, "Encoding label as `text` used it.")
    fragment: str | None = _fact("fragment", str | None, "Where a fragment stood; None for a whole document.")
    length: int = _fact("length", int, "Content length in bytes.")

    def header(self, name: str) -> list[str]:
        """All values of one header, in order; the name is compared without case."""
        return self.handle.header(name)

    def read(self, offset: int, length: int) -> bytes:
        """Content from `offset`, at most `length` bytes; shorter at the end, empty past it."""
        return bytes(self.handle.read(offset, length))

    def content(self) -> bytes:
        """The whole content, transfer and content codings removed."""
        length = self.length
        if length <= READ_BYTES_MAX:
            return self.read(0, length)
        return b"".join(self.read(offset, READ_BYTES_MAX) for offset in range(0, length, READ_BYTES_MAX))

    def text(self) -> str:
        """The whole content as text; what cannot be decoded reads U+FFFD."""
        return self.handle.text()

    def set_note(self, name: str, value: str) -> None:
        """Leaves a note for later plugins of this visit, and for the metadata record."""
        self.handle.set_note(name, value)

    def annotate(self, annotation: str) -> None:
        """Adds an annotation to the document's line in the crawl log."""
        self.handle.annotate(annotation)


class Visit(_Keeping):
    """The URI's standing in the crawl at this visit."""

    now: datetime = _fact("now", datetime, "The time of this visit. Plugins have no other clock.")
    status: int = _fact("status", int, "Fetch status of this visit; 0 before the fetch.")
    media_type: str = _fact("media_type", str, "Media type of this visit's response.")
    state: str = _fact("state", ContentState, "State of the content: new, changed, unchanged or unknown.")
    size: int | None = _fact("size", int | None, "Size of the content.")
    last_wait: timedelta | None = _fact("last_wait", timedelta | None, "The wait that led to this visit.")
    overdue: timedelta = _fact("overdue", timedelta, "How long past its due time this visit began.")
    visits: int = _fact("visits", int, "Completed visits, this one included once fetched.")
    versions: int = _fact("versions", int, "Versions seen.")
    history: list[PastVisit] = _fact("history", list[PastVisit], "Earlier visits, newest first.")
    outlinks: int = _fact("outlinks", int, "Links found on the document when it was last extracted.")
    inlinks: int = _fact("inlinks", int, "Times the document has been found linked.")
    signals: list[Signal] = _fact("signals", list[Signal], "News since the last visit, newest first.")
    neighbourhood: list[Neighbourhood] = _fact("neighbourhood", list[Neighbourhood], "The documents around it.")

    @property
    def candidate(self) -> Candidate:
        """What was asked for, as filters saw it at discovery."""
        return raising(Candidate)(self.handle.candidate())

    def validator(self, name: str) -> str | None:
        """Header of the last archived version that the host keeps: `etag`, `last-modified`."""
        return self.handle.validator(name)

    def measure(self, name: str) -> float | None:
        """A value that the host computes for whole queues or crawls."""
        return self.handle.measure(name)


class Queue:
    """A queue that is to be ranked."""

    def __init__(self, handle: Any):
        self.handle = handle

    name: str = _fact("name", str, "Its name, such as `org,example,www,`.")
    queued: int = _fact("queued", int, "URIs that wait in it.")
    succeeded: int = _fact("succeeded", int, "Completed fetches that were successes.")
    failed: int = _fact("failed", int, "Completed fetches that failed.")
    bytes: int = _fact("bytes", int, "Bytes fetched.")
    best: int | None = _fact("best", int | None, "Precedence of its best waiting URI.")
    base: int = _fact("base", int, "The precedence that the profile gives it.")
    now: datetime = _fact("now", datetime, "The time at which this is asked.")


class Candidates:
    """All candidates of a call, in the order found. A column comes from the host when a value of it is first read."""

    def __init__(self, handle: Any):
        self.handle = handle
        self._columns: dict[str, list[Any]] = {}

    def __len__(self) -> int:
        return self.handle.length()

    def __iter__(self) -> Iterator[Any]:
        return (_View(self, index) for index in range(len(self)))

    def in_table(self, name: str) -> list[bool]:
        """Which of them have a row in a table."""
        key = f"table {name}"
        if key not in self._columns:
            self._columns[key] = host.host.find_candidates(name, self.handle)
        return self._columns[key]

    def column(self, name: str) -> list[Any]:
        """A value of each, such as `uris`."""
        if name not in self._columns:
            column = getattr(self.handle, name)()
            # A text has a line for each candidate.
            self._columns[name] = column.split("\n") if isinstance(column, str) else column
        return self._columns[name]


def _column(name: str, *, optional: bool = False) -> Any:
    return property(lambda view: view.all.column(name)[view.index] or (None if optional else ""))


class _View:
    """One of several candidates: reads as a `Candidate`."""

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
        return raising(Candidate)(self.all.handle.get(self.index)).attributes

    def is_in_table(self, name: str) -> bool:
        return self.all.in_table(name)[self.index]
