"""What an author writes: who a plugin is, and what it does."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from .records import (
    Candidate,
    Comparison,
    Description,
    Extraction,
    Finished,
    Handles,
    Keep,
    Link,
    NamedValue,
    Observation,
    Report,
    Ruling,
    Span,
    Wait,
)
from .settings import schema_of
from .views import Candidates, Document, Queue, Visit


class Plugin(ABC):
    """Who a plugin is, and its settings. An instance is the configured plugin; nothing that a call changes in it stays."""

    #: Lower-case words joined by hyphens, such as `repeating-path`.
    name: ClassVar[str]
    #: One sentence for the operator.
    summary: ClassVar[str]
    #: Semantic version; None: that of the package.
    version: ClassVar[str | None] = None
    #: Media types that it wants to be called for, such as `text/*`; empty: any.
    media_types: ClassVar[Sequence[str]] = ()
    #: Regular expressions (RE2 syntax), one of which the URI must match somewhere; empty: any.
    uris: ClassVar[Sequence[str]] = ()
    #: Values that it keeps with URIs and sites from visit to visit.
    keeps: ClassVar[Sequence[Keep]] = ()
    #: Anything more for the description.
    attributes: ClassVar[Sequence[NamedValue]] = ()
    #: A dataclass of what the profile may set; None: nothing.
    Settings: ClassVar[type | None] = None

    def __init__(self, settings: Any):
        """Called once, before any other call; raises `SettingsFault` where settings do not fit."""
        self.settings = settings

    @classmethod
    def describe(cls, package_version: str) -> Description:
        """Who it is, as the contract has it."""
        for name in ("name", "summary"):
            if not isinstance(getattr(cls, name, None), str):
                raise TypeError(f"{cls.__name__} needs a {name}, which is a str")
        kinds = [kind for kind, base in KINDS.items() if issubclass(cls, base)]
        if not kinds:
            raise TypeError(f"{cls.__name__} does nothing: it is none of {', '.join(one.__name__ for one in KINDS.values())}")
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            raise TypeError(f"{cls.__name__} has no {', '.join(missing)}")
        return Description(
            name=cls.name,
            version=cls.version or package_version,
            summary=cls.summary,
            kinds=kinds,
            handles=Handles(list(cls.media_types), list(cls.uris)),
            settings_schema=json.dumps(schema_of(cls.Settings)),
            keeps=list(cls.keeps),
            attributes=list(cls.attributes),
        )


class Extractor(Plugin):
    """Finds links."""

    @abstractmethod
    def extract(self, document: Document) -> Extraction | Iterable[Link] | None:
        """What one document, or one fragment, gives."""


class Filter(Plugin):
    """Says yes or no. None is no opinion."""

    def judge_candidate(self, candidate: Candidate, stage: str) -> Ruling | None:
        """Rules on one candidate, at the stages scope, pre-fetch and plugin."""
        return None

    def judge_candidates(self, candidates: Candidates, stage: str) -> Iterable[Ruling | None]:
        """Rules on all outlinks of a page, in their order."""
        return [self.judge_candidate(candidate, stage) for candidate in candidates]

    def judge_document(self, document: Document, visit: Visit, stage: str) -> Ruling | None:
        """Rules on a response; unless overridden, as on the candidate that it came from."""
        return self.judge_candidate(visit.candidate, stage)


class DigestStripper(Plugin):
    """Says which parts of a document do not count as content when it is compared with its last version."""

    @abstractmethod
    def strip(self, document: Document) -> Iterable[Span]:
        """Spans of the document's bytes, in any order; overlaps count once. Raises `StripProblem`."""


class ChangeEvaluator(Plugin):
    """Says whether a document differs from its last archived version, where the bytes do."""

    @abstractmethod
    def compare(self, document: Document, visit: Visit, last: bytes | None) -> Comparison | None:
        """`last` is the fingerprint that this plugin made of that version."""


class WaitEvaluator(Plugin):
    """Says how long to wait before the next visit."""

    @abstractmethod
    def evaluate(self, visit: Visit) -> timedelta | Wait | None:
        """None leaves the answer to the next evaluator of the stack."""


class Precedence(Plugin):
    """Says what comes first: 1 is the highest, 255 the lowest; None leaves it to the next plugin, and at last to the profile."""

    def rank_candidate(self, candidate: Candidate, document: Document | None) -> int | None:
        """Ranks one candidate. The document is the page that it was found on; None for a seed."""
        return None

    def rank_candidates(self, candidates: Candidates, document: Document | None) -> Iterable[int | None]:
        """Ranks all outlinks of a page, in their order."""
        return [self.rank_candidate(candidate, document) for candidate in candidates]

    def rank_queue(self, queue: Queue) -> int | None:
        """Ranks a queue."""
        return None


class Observer(Plugin):
    """Watches what becomes of URIs. It decides nothing."""

    @abstractmethod
    def observe(self, memory: bytes, events: list[Finished]) -> Observation:
        """`memory` is that of the last observation; empty at the first."""

    def report(self, memory: bytes, now: datetime) -> Iterable[Report]:
        """Reports on what has been seen so far."""
        return []


#: The kinds, as the contract calls them.
KINDS: dict[str, type[Plugin]] = {
    "extractor": Extractor,
    "filter": Filter,
    "digest-stripper": DigestStripper,
    "change-evaluator": ChangeEvaluator,
    "wait-evaluator": WaitEvaluator,
    "precedence": Precedence,
    "observer": Observer,
}
