"""Base classes of plugins: the description of a plugin, and the functions of each kind."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar

from .records import (
    Action,
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
    StepPlan,
    Wait,
)
from .settings import schema_of
from .views import Candidates, Document, Page, Queue, Visit


class Plugin(ABC):
    """A plugin with its description and settings. An instance is configured. Changes that a call makes to it are lost."""

    #: Lower-case words joined by hyphens, such as `repeating-path`.
    name: ClassVar[str]
    #: One sentence for operators.
    summary: ClassVar[str]
    #: Semantic version. None: the version of the package.
    version: ClassVar[str | None] = None
    #: Media types that the plugin is called for, such as `text/*`. Empty: any.
    media_types: ClassVar[Sequence[str]] = ()
    #: Regular expressions (RE2 syntax). One of them must match somewhere in the URI. Empty: any URI.
    uris: ClassVar[Sequence[str]] = ()
    #: Values that the plugin keeps with URIs and sites.
    keeps: ClassVar[Sequence[Keep]] = ()
    #: Further facts for the description.
    attributes: ClassVar[Sequence[NamedValue]] = ()
    #: A dataclass of settings. None: the plugin has no settings.
    Settings: ClassVar[type | None] = None

    def __init__(self, settings: Any):
        """Called before all other calls, perhaps more than once. Raises `SettingsFault` for invalid settings."""
        self.settings = settings

    @classmethod
    def describe(cls, package_version: str) -> Description:
        """Returns the description of the plugin."""
        for name in ("name", "summary"):
            if not isinstance(getattr(cls, name, None), str):
                raise TypeError(f"{cls.__name__} needs a {name} of type str")
        kinds = [kind for kind, base in KINDS.items() if issubclass(cls, base)]
        if not kinds:
            raise TypeError(f"{cls.__name__} has no kind: it must extend one of {', '.join(one.__name__ for one in KINDS.values())}")
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            raise TypeError(f"{cls.__name__} does not define {', '.join(missing)}")
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
        """Extracts from one document or fragment."""


class Filter(Plugin):
    """Accepts or rejects candidates and responses. None leaves the decision to the other filters of the stack."""

    def judge_candidate(self, candidate: Candidate, stage: str) -> Ruling | None:
        """Judges one candidate, at the stages scope, pre-fetch and plugin."""
        return None

    def judge_candidates(self, candidates: Candidates, stage: str) -> Iterable[Ruling | None]:
        """Judges all outlinks of a page, in their order."""
        return [self.judge_candidate(candidate, stage) for candidate in candidates]

    def judge_document(self, document: Document, visit: Visit, stage: str) -> Ruling | None:
        """Judges a response. The default judges its candidate."""
        return self.judge_candidate(visit.candidate, stage)


class DigestStripper(Plugin):
    """Finds the parts of a document that a comparison with its last version ignores."""

    @abstractmethod
    def strip(self, document: Document) -> Iterable[Span]:
        """Returns spans of the document's bytes, in any order. Overlapping bytes count once. Raises `StripProblem`."""


class ChangeEvaluator(Plugin):
    """Compares a document with its last archived version if the bytes differ."""

    @abstractmethod
    def compare(self, document: Document, visit: Visit, last: bytes | None) -> Comparison | None:
        """Compares the document with that version. `last` is the fingerprint that this plugin made of it."""


class WaitEvaluator(Plugin):
    """Chooses the wait until the next visit."""

    @abstractmethod
    def evaluate(self, visit: Visit) -> timedelta | Wait | None:
        """Returns the wait. None leaves the answer to the next evaluator of the stack."""


class Precedence(Plugin):
    """Ranks URIs and queues from 1, the highest, to 255. None leaves the answer to the next plugin, or else to the profile."""

    def rank_candidate(self, candidate: Candidate, document: Document | None) -> int | None:
        """Ranks one candidate. The document is the page that contains it; None for a seed."""
        return None

    def rank_candidates(self, candidates: Candidates, document: Document | None) -> Iterable[int | None]:
        """Ranks all outlinks of a page, in their order."""
        return [self.rank_candidate(candidate, document) for candidate in candidates]

    def rank_queue(self, queue: Queue) -> int | None:
        """Ranks a queue."""
        return None


class Observer(Plugin):
    """Receives the results of visits. It decides nothing."""

    @abstractmethod
    def observe(self, memory: bytes, events: list[Finished]) -> Observation:
        """Observes a batch. `memory` is that of the last observation; empty at the first."""

    def report(self, memory: bytes, now: datetime) -> Iterable[Report]:
        """Returns reports on the results so far."""
        return []


class PageBehavior(Plugin):
    """Operates a page in a browser before its content is taken: scrolls, clicks, waits."""

    @abstractmethod
    def step(self, page: Page, visit: Visit, memory: bytes) -> StepPlan | Iterable[Action] | None:
        """Plans the next actions. A list of actions is the last step. None is a last step without actions.

        `memory` is that of the last step on this page; empty at the first."""


#: Base classes by the names of the kinds in the contract.
KINDS: dict[str, type[Plugin]] = {
    "extractor": Extractor,
    "filter": Filter,
    "digest-stripper": DigestStripper,
    "change-evaluator": ChangeEvaluator,
    "wait-evaluator": WaitEvaluator,
    "precedence": Precedence,
    "observer": Observer,
    "page-behavior": PageBehavior,
}
