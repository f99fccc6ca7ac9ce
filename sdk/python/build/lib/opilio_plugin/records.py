"""The contract's records as plugins read and write them: what may be left out has a default, instants are `datetime`s,
durations `timedelta`s, and a variant is its name. `wire.py` turns them into those of the bindings and back."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated

from .wire import Variant

Hop = Annotated[
    str,
    Variant(
        "Hop",
        ("link", "embed", "speculative", "redirect", "prerequisite", "inferred", "manifest", "submit"),
        other=True,
    ),
]
ContentState = Annotated[str, Variant("ContentState", ("new", "changed", "unchanged", "unknown"), enum=True)]


@dataclass(slots=True)
class NamedValue:
    """A value under a name: lower-case words joined by hyphens. A name given twice means both values."""

    name: str
    value: str


@dataclass(slots=True)
class Header:
    """One header field, as received."""

    name: str
    value: str


@dataclass(slots=True)
class Span:
    """Bytes from `offset` up to `offset + length`, end excluded."""

    offset: int
    length: int

    @classmethod
    def between(cls, start: int, end: int) -> "Span":
        """As slices and matches have it."""
        return cls(start, end - start)


@dataclass(slots=True)
class DateSignal:
    """What the page itself says about when a linked resource appeared or changed."""

    published: datetime | None = None
    modified: datetime | None = None


@dataclass(slots=True)
class Submission:
    """A form submission that a `submit` link stands for."""

    method: str
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class LinkDetails:
    """What few links have."""

    submission: Submission | None = None
    dates: DateSignal | None = None
    attributes: list[NamedValue] = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """A reference found in a document, as written: the host resolves it. `context` says where it stood (`a/@href`)."""

    uri: str
    hop: Hop = "link"
    context: str = ""
    base: str | None = None
    details: LinkDetails | None = None


@dataclass(slots=True)
class TextAt:
    """A span of the UTF-8 bytes of the document's text."""

    span: Span


@dataclass(slots=True)
class BytesAt:
    """A span of the document's bytes."""

    span: Span


FragmentContent = Annotated[
    str | bytes | TextAt | BytesAt,
    Variant("FragmentContent", payloads={"text": str, "bytes": bytes, "text-at": TextAt, "bytes-at": BytesAt}),
]


@dataclass(slots=True)
class Fragment:
    """A part of a document that has a media type of its own."""

    media_type: str
    content: FragmentContent
    context: str = ""
    base: str | None = None


@dataclass(slots=True)
class Extraction:
    """What one document gave. An extractor may return links alone."""

    links: list[Link] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    base: str | None = None
    finished: bool = False
    problem: str | None = None


@dataclass(slots=True)
class Candidate:
    """A URI that may become part of the crawl, or has."""

    uri: str
    surt: str = ""
    hop_path: str = ""
    via: str | None = None
    via_surt: str | None = None
    context: str = ""
    seed: bool = False
    source: str | None = None
    address: str | None = None
    attributes: list[NamedValue] = field(default_factory=list)

    def is_in_table(self, name: str) -> bool:
        """By its SURT form in a table of SURT prefixes, by its URI in others."""
        from .host import table

        rows = table(name)
        return rows.find(self.surt if rows.kind == "surt-prefixes" else self.uri) is not None


@dataclass(slots=True)
class PastVisit:
    """One visit of the past."""

    at: datetime
    status: int = 0
    state: ContentState = "new"
    size: int | None = None


@dataclass(slots=True)
class KeptValue:
    """A value that the plugin has kept, and the version of its form that was declared then."""

    version: int
    value: str


@dataclass(slots=True)
class Signal:
    """News of a document that came from elsewhere than a visit to it."""

    at: datetime
    source: str = ""
    modified: datetime | None = None


@dataclass(slots=True)
class Neighbourhood:
    """What is known of the documents around this one."""

    shares: str
    documents: int = 0
    visits: int = 0
    changes: int = 0
    observed: timedelta = timedelta()


@dataclass(slots=True)
class Row:
    """A row of a table."""

    key: str
    value: str = ""


@dataclass(slots=True)
class Retry:
    """At post-fetch alone: no success; fetch it again after this time."""

    wait: timedelta


Verdict = Annotated[
    str | Retry,
    Variant("Verdict", ("accept", "reject", "pass", "unchanged"), payloads={"retry": Retry}, other=True),
]


@dataclass(slots=True)
class Ruling:
    """Yes or no, and why. In a stack the last ruling that is not `pass` decides."""

    verdict: Verdict
    reason: str = ""

    @classmethod
    def accept(cls, reason: str = "") -> "Ruling":
        """Yes."""
        return cls("accept", reason)

    @classmethod
    def reject(cls, reason: str = "") -> "Ruling":
        """No."""
        return cls("reject", reason)

    @classmethod
    def unchanged(cls, reason: str = "") -> "Ruling":
        """At mid-fetch alone: the headers say that nothing has changed."""
        return cls("unchanged", reason)

    @classmethod
    def retry(cls, wait: timedelta, reason: str = "") -> "Ruling":
        """At post-fetch alone: no success; fetch it again after this time."""
        return cls(Retry(wait), reason)


class StripProblem(Exception):
    """Raised by `strip`: nothing can be said. Of a document that is too large, its `size` says how large."""

    def __init__(self, problem: str = "", *, size: int | None = None):
        super().__init__(problem or f"too large: {size} bytes")
        self.problem, self.size = problem, size


@dataclass(slots=True)
class Wait:
    """How long to wait before the next visit. An evaluator may return a `timedelta` alone."""

    next_visit: timedelta
    ask_again: timedelta | None = None


@dataclass(slots=True)
class Comparison:
    """Whether a document differs: `changed`, `unchanged`, or None, which leaves it to the next evaluator."""

    difference: Annotated[str, Variant("Difference", ("changed", "unchanged"), enum=True)] | None = None
    fingerprint: bytes | None = None
    reason: str = ""


@dataclass(slots=True)
class Finished:
    """A URI whose visit is completed, or has failed for good."""

    at: datetime
    uri: str
    status: int = 0
    media_type: str = ""
    size: int | None = None
    took: timedelta | None = None
    state: ContentState = "new"
    hop_path: str = ""
    via: str | None = None
    source: str | None = None
    queue: str = ""
    digest: str | None = None
    annotations: list[str] = field(default_factory=list)
    attributes: list[NamedValue] = field(default_factory=list)


@dataclass(slots=True)
class Line:
    """A line for one of the observer's own files."""

    file: str
    text: str


@dataclass(slots=True)
class Observation:
    """What the host is to hand over with the next batch, and lines for the observer's files."""

    memory: bytes = b""
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A report, whole: it replaces the one of before."""

    file: str
    content: str


@dataclass(slots=True)
class Keep:
    """A value that a plugin keeps with a `uri` or a `site`, and the version of its form."""

    name: str
    keeper: Annotated[str, Variant("Keeper", ("uri", "site"), other=True)] = "uri"
    version: int = 1


@dataclass(slots=True)
class Handles:
    """What a plugin wants to be called for; empty: anything."""

    media_types: list[str] = field(default_factory=list)
    uris: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Description:
    """Who a plugin is, as the contract has it."""

    name: str
    version: str
    summary: str
    kinds: list[
        Annotated[
            str,
            Variant(
                "Kind",
                (
                    "extractor",
                    "filter",
                    "digest-stripper",
                    "change-evaluator",
                    "wait-evaluator",
                    "precedence",
                    "observer",
                ),
                other=True,
            ),
        ]
    ]
    handles: Handles
    settings_schema: str
    keeps: list[Keep]
    attributes: list[NamedValue]


#: What the bindings call records that have another name here.
NAMES = {Report: "ReportFile"}


def links(answer: "Extraction | Iterable[Link] | None") -> Extraction:
    """Links alone are an extraction, too, and so is nothing."""
    return answer if isinstance(answer, Extraction) else Extraction(list(answer or ()))
