"""The contract's records in the form that plugins read and write. Optional fields have defaults, instants are `datetime`s,
durations are `timedelta`s, and variants are names. `wire.py` converts them to records of the bindings and back."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any

from .wire import Signed, Variant

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
    """A named value. The name is lower-case words joined by hyphens. It can occur several times in a list, with different values."""

    name: str
    value: str


@dataclass(slots=True)
class Header:
    """One header field, as received."""

    name: str
    value: str


@dataclass(slots=True)
class Span:
    """Bytes from `offset` up to, but not including, `offset + length`."""

    offset: int
    length: int

    @classmethod
    def between(cls, start: int, end: int) -> "Span":
        """Returns the span of a slice or a match."""
        return cls(start, end - start)


@dataclass(slots=True)
class DateSignal:
    """Dates that the document gives for a linked resource."""

    published: datetime | None = None
    modified: datetime | None = None


@dataclass(slots=True)
class Submission:
    """The form submission of a `submit` link."""

    method: str
    content_type: str = ""
    body: bytes = b""


@dataclass(slots=True)
class LinkDetails:
    """Details that few links have."""

    submission: Submission | None = None
    dates: DateSignal | None = None
    attributes: list[NamedValue] = field(default_factory=list)


@dataclass(slots=True)
class Link:
    """A reference in a document, as written. The host resolves it. `context` is its position (`a/@href`)."""

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
    """A part of a document with a media type of its own."""

    media_type: str
    content: FragmentContent
    context: str = ""
    base: str | None = None


@dataclass(slots=True)
class Extraction:
    """The results for one document. An extractor may return a list of links instead."""

    links: list[Link] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    base: str | None = None
    finished: bool = False
    problem: str | None = None


@dataclass(slots=True)
class Candidate:
    """A URI that the crawl has found."""

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
        """Looks the candidate up in a table: its SURT form in a table of SURT prefixes, its URI in others."""
        from .host import table

        rows = table(name)
        return rows.find(self.surt if rows.kind == "surt-prefixes" else self.uri) is not None


@dataclass(slots=True)
class PastVisit:
    """An earlier visit."""

    at: datetime
    status: int = 0
    state: ContentState = "new"
    size: int | None = None


@dataclass(slots=True)
class KeptValue:
    """A kept value, and the version of its form."""

    version: int
    value: str


@dataclass(slots=True)
class Signal:
    """News about a document from another source than a visit to it."""

    at: datetime
    source: str = ""
    modified: datetime | None = None


@dataclass(slots=True)
class Neighbourhood:
    """Sums about the documents that share a property with this one."""

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
    """A verdict for stage post-fetch: the URI is fetched again after this time."""

    wait: timedelta


Verdict = Annotated[
    str | Retry,
    Variant("Verdict", ("accept", "reject", "pass", "unchanged"), payloads={"retry": Retry}, other=True),
]


@dataclass(slots=True)
class Ruling:
    """A verdict with its reason. In a stack the last verdict other than `pass` decides."""

    verdict: Verdict
    reason: str = ""

    @classmethod
    def accept(cls, reason: str = "") -> "Ruling":
        """Returns a ruling that accepts."""
        return cls("accept", reason)

    @classmethod
    def reject(cls, reason: str = "") -> "Ruling":
        """Returns a ruling that rejects."""
        return cls("reject", reason)

    @classmethod
    def unchanged(cls, reason: str = "") -> "Ruling":
        """Returns a ruling for stage mid-fetch: the headers show that nothing has changed."""
        return cls("unchanged", reason)

    @classmethod
    def retry(cls, wait: timedelta, reason: str = "") -> "Ruling":
        """Returns a ruling for stage post-fetch: the URI is fetched again after this time."""
        return cls(Retry(wait), reason)


class StripProblem(Exception):
    """The reason why a document cannot be stripped, raised by `strip`. `size` is for documents that are too large."""

    def __init__(self, problem: str = "", *, size: int | None = None):
        super().__init__(problem or f"too large: {size} bytes")
        self.problem, self.size = problem, size


@dataclass(slots=True)
class Wait:
    """The time until the next visit. An evaluator may return a `timedelta` instead."""

    next_visit: timedelta
    ask_again: timedelta | None = None


@dataclass(slots=True)
class Comparison:
    """The result of a comparison: `changed`, `unchanged`, or None, which leaves the answer to the next evaluator."""

    difference: Annotated[str, Variant("Difference", ("changed", "unchanged"), enum=True)] | None = None
    fingerprint: bytes | None = None
    reason: str = ""


@dataclass(slots=True)
class Finished:
    """A URI whose visit succeeded, or failed for good."""

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
    """A line for one of the observer's files."""

    file: str
    text: str


@dataclass(slots=True)
class Observation:
    """Data for the next batch, and lines for the observer's files."""

    memory: bytes = b""
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class Report:
    """A report. It replaces the previous report of this name."""

    file: str
    content: str


@dataclass(slots=True)
class ScrollTo:
    """A scroll position in CSS pixels from the top of the page."""

    pixels: int


@dataclass(slots=True)
class ScrollBy:
    """A scroll distance in CSS pixels. A negative distance scrolls up."""

    pixels: Signed


@dataclass(slots=True)
class ScrollToElement:
    """A scroll target: the first element that matches a CSS selector."""

    selector: str


@dataclass(slots=True)
class Scroll:
    """Scrolls the window to `top`, `bottom`, or a position."""

    target: Annotated[
        str | ScrollTo | ScrollBy | ScrollToElement,
        Variant(
            "ScrollTarget", ("top", "bottom"), payloads={"to": ScrollTo, "by": ScrollBy, "element": ScrollToElement}
        ),
    ] = "bottom"


@dataclass(slots=True)
class Click:
    """Clicks visible elements that match a CSS selector, in document order.

    `text` is a regular expression (JavaScript syntax, case ignored) for the element's text or label. `only_new` skips
    elements that an earlier action clicked."""

    selector: str
    text: str | None = None
    at_most: int = 1
    only_new: bool = False


@dataclass(slots=True)
class WaitForSelector:
    """Waits until an element matches a CSS selector, at most for this time."""

    selector: str
    at_most: timedelta = timedelta(seconds=5)


@dataclass(slots=True)
class WaitForNetwork:
    """Waits until the page has no requests in flight, at most for this time."""

    at_most: timedelta = timedelta(seconds=5)


@dataclass(slots=True)
class Pause:
    """Waits for this time."""

    time: timedelta


@dataclass(slots=True)
class Evaluate:
    """Runs the body of an async function in the page. The result is `value` with the returned value as JSON."""

    script: str


@dataclass(slots=True)
class Screenshot:
    """Takes a screenshot of the window."""


Action = Annotated[
    Scroll | Click | WaitForSelector | WaitForNetwork | Pause | Evaluate | Screenshot,
    Variant(
        "Action",
        payloads={
            "scroll": Scroll,
            "click": Click,
            "wait-for-selector": WaitForSelector,
            "wait-for-network": WaitForNetwork,
            "wait": Pause,
            "evaluate": Evaluate,
            "screenshot": Screenshot,
        },
    ),
]


@dataclass(slots=True)
class StepPlan:
    """The answer of a step. Unless it is `finished`, there is a next step, which gets `memory`.

    `count` has CSS selectors for `page.count` at the next step."""

    actions: list[Action] = field(default_factory=list)
    count: list[str] = field(default_factory=list)
    memory: bytes = b""
    finished: bool = False


@dataclass(slots=True)
class ActionResult:
    """The result of an action.

    `name` is `done`, `clicked`, `value`, `no-element`, `not-idle`, `invalid`, `exception` or `refused`. `detail` is the
    number of clicked elements, the JSON of `value`, or the text of an error."""

    name: str
    detail: int | str | None = None

    @property
    def clicked(self) -> int:
        """Number of clicked elements."""
        return self.detail if self.name == "clicked" and isinstance(self.detail, int) else 0

    @property
    def value(self) -> Any:
        """The value that a script returned; None for other results."""
        return json.loads(self.detail) if self.name == "value" and isinstance(self.detail, str) else None


@dataclass(slots=True)
class Keep:
    """A value that a plugin keeps with a `uri` or a `site`, and the version of its form."""

    name: str
    keeper: Annotated[str, Variant("Keeper", ("uri", "site"), other=True)] = "uri"
    version: int = 1


@dataclass(slots=True)
class Handles:
    """The documents that a plugin is called for. Empty: any."""

    media_types: list[str] = field(default_factory=list)
    uris: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Description:
    """The description of a plugin."""

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
                    "page-behavior",
                ),
                other=True,
            ),
        ]
    ]
    handles: Handles
    settings_schema: str
    keeps: list[Keep]
    attributes: list[NamedValue]


#: Names of records in the bindings, if they differ.
NAMES = {Report: "ReportFile", WaitForSelector: "SelectorWait"}


def links(answer: "Extraction | Iterable[Link] | None") -> Extraction:
    """Converts an extractor's answer. A list of links becomes an extraction. None becomes an empty one."""
    return answer if isinstance(answer, Extraction) else Extraction(list(answer or ()))


def step_plan(answer: "StepPlan | Iterable[Action] | None") -> StepPlan:
    """Converts the answer of a step. A list of actions becomes the last step. None becomes a last step without actions."""
    return answer if isinstance(answer, StepPlan) else StepPlan(list(answer or ()), finished=True)
