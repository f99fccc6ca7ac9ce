"""The exports of a component: they call the configured plugin and convert its answers. The host calls them through the
bindings, and native tests call them with the handles of `double`. The module that the build writes exports them."""

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import PurePath
from typing import Any, NoReturn, Protocol

from . import host
from .plugin import Plugin
from .records import (
    Comparison,
    Description,
    Extraction,
    Finished,
    Observation,
    Report,
    Ruling,
    Span,
    StepPlan,
    Wait,
    links,
    step_plan,
)
from .settings import SettingsFault, SettingsFaults, parse_settings
from .views import Candidates, Document, Page, Queue, Visit
from .wire import Variant, WrongType, bindings, case_name, lifting, lowering

_STRIP_PROBLEM = Variant("StripProblem", ("too-large", "other"))


class Refused(Exception):
    """An error of the contract, as a value of the bindings."""

    def __init__(self, value: Any):
        super().__init__("refused")
        self.value = value


class Project(Protocol):
    """The plugins of a project, and its version."""

    @property
    def plugins(self) -> list[type[Plugin]]: ...

    @property
    def version(self) -> str: ...


@dataclass(frozen=True)
class _LoadedProject:
    """A project whose plugins are loaded."""

    plugins: list[type[Plugin]]
    version: str


class Component:
    """A component of these plugins. Answers are values of the bindings."""

    def __init__(self, plugins: list[type[Plugin]], version: str = "0.0.0"):
        self.project: Project = _LoadedProject(plugins, version)
        self.configured: Any = None

    @classmethod
    def of(cls, project: "Project") -> "Component":
        """Returns the component of a project, whose plugins may be loaded later."""
        component = cls([])
        component.project = project
        return component

    @property
    def plugins(self) -> list[type[Plugin]]:
        """The plugins."""
        return self.project.plugins

    @property
    def version(self) -> str:
        """The version of plugins without a version of their own."""
        return self.project.version

    def describe(self) -> list[Any]:
        """`setup.describe`."""
        return lowering(list[Description])([plugin.describe(self.version) for plugin in self.plugins])

    def configure(self, name: str, settings: str) -> None:
        """`setup.configure`."""
        plugin = next((plugin for plugin in self.plugins if plugin.name == name), None)
        if plugin is None:
            names = ", ".join(plugin.name for plugin in self.plugins)
            _refuse([SettingsFault("", f"the component has no plugin `{name}`; it has: {names}")])
        try:
            self.configured = plugin(parse_settings(plugin.Settings, settings))
        except SettingsFault as fault:
            _refuse([fault])
        except SettingsFaults as faults:
            _refuse(faults.exceptions)
        except Exception as problem:
            host.error(f"{name} {plugin.version or self.version}, configure: {_describe_error(problem)}")
            raise

    def extract(self, documents: list[Any]) -> list[Any]:
        """`extractor.extract`."""
        return self._call_plugin(
            "extract",
            lambda plugin: [
                _LOWER_EXTRACTION(links(plugin.extract(Document(document)))) for document in documents
            ],
        )

    def judge_candidates(self, stage: Any, candidates: Any) -> list[Any]:
        """`filter.judge-candidates`."""
        return self._call_plugin(
            "judge_candidates",
            lambda plugin: _LOWER_RULINGS(
                _ruling(ruling) for ruling in plugin.judge_candidates(Candidates(candidates), case_name(stage))
            ),
        )

    def judge_document(self, stage: Any, document: Any, visit: Any) -> Any:
        """`filter.judge-document`."""
        return self._call_plugin(
            "judge_document",
            lambda plugin: _LOWER_RULING(
                _ruling(plugin.judge_document(Document(document), Visit(visit), case_name(stage)))
            ),
        )

    def strip(self, document: Any) -> list[Any]:
        """`digest-stripper.strip`."""
        from .records import StripProblem

        def work(plugin: Any) -> Any:
            try:
                return _LOWER_SPANS(plugin.strip(Document(document)))
            except StripProblem as problem:
                if problem.size is not None:
                    raise Refused(bindings().case(_STRIP_PROBLEM, "too-large", problem.size)) from None
                raise Refused(bindings().case(_STRIP_PROBLEM, "other", problem.problem)) from None

        return self._call_plugin("strip", work)

    def compare(self, document: Any, visit: Any, last: bytes | None) -> Any:
        """`change-evaluator.compare`."""
        return self._call_plugin(
            "compare",
            lambda plugin: _LOWER_COMPARISON(plugin.compare(Document(document), Visit(visit), last) or Comparison()),
        )

    def evaluate(self, visit: Any) -> Any:
        """`wait-evaluator.evaluate`."""

        def work(plugin: Any) -> Any:
            wait = plugin.evaluate(Visit(visit))
            return _LOWER_WAIT(Wait(wait) if isinstance(wait, timedelta) else wait)

        return self._call_plugin("evaluate", work)

    def rank_candidates(self, candidates: Any, document: Any) -> list[int | None]:
        """`precedence.rank-candidates`."""
        return self._call_plugin(
            "rank_candidates",
            lambda plugin: [
                _rank(rank)
                for rank in plugin.rank_candidates(Candidates(candidates), document and Document(document))
            ],
        )

    def rank_queue(self, queue: Any) -> int | None:
        """`precedence.rank-queue`."""
        return self._call_plugin("rank_queue", lambda plugin: _rank(plugin.rank_queue(Queue(queue))))

    def observe(self, memory: bytes, events: list[Any]) -> Any:
        """`observer.observe`."""
        lift_all = lifting(list[Finished])
        return self._call_plugin("observe", lambda plugin: _LOWER_OBSERVATION(plugin.observe(memory, lift_all(events))))

    def report(self, memory: bytes, now: int) -> list[Any]:
        """`observer.report`."""
        at = lifting(datetime)(now)
        return self._call_plugin("report", lambda plugin: _LOWER_REPORTS(plugin.report(memory, at)))

    def step(self, page: Any, visit: Any, memory: bytes) -> Any:
        """`page-behavior.step`."""
        return self._call_plugin(
            "step",
            lambda plugin: _LOWER_STEP_PLAN(step_plan(plugin.step(Page(page), Visit(visit), memory))),
        )

    def _call_plugin(self, call: str, work: Callable[[Any], Any]) -> Any:
        """Calls the plugin. An exception is logged, and then ends the call."""
        if self.configured is None:
            raise RuntimeError("called before `configure`")
        try:
            return work(self.configured)
        except Refused:
            raise
        except Exception as problem:
            version = self.configured.version or self.version
            host.error(f"{self.configured.name} {version}, {call}: {_describe_error(problem)}")
            raise


_LOWER_EXTRACTION = lowering(Extraction)
_LOWER_RULING = lowering(Ruling)
_LOWER_RULINGS = lowering(list[Ruling])
_LOWER_SPANS = lowering(list[Span])
_LOWER_COMPARISON = lowering(Comparison)
_LOWER_WAIT = lowering(Wait | None)
_LOWER_OBSERVATION = lowering(Observation)
_LOWER_REPORTS = lowering(list[Report])
_LOWER_STEP_PLAN = lowering(StepPlan)


def _refuse(faults: Iterable[Any]) -> NoReturn:
    """Raises the error of `setup.configure`."""
    values = [{"pointer": fault.pointer, "problem": fault.problem} for fault in faults]
    raise Refused([bindings().record("SettingsFault", value) for value in values])


def _ruling(ruling: Ruling | None) -> Ruling:
    return Ruling("pass") if ruling is None else ruling


def _rank(rank: int | None) -> int | None:
    if rank is not None and (not isinstance(rank, int) or isinstance(rank, bool) or not 1 <= rank <= 255):
        raise WrongType(rank, "a precedence from 1 to 255, or None")
    return rank


def _describe_error(problem: BaseException) -> str:
    """Describes an exception with its place. Frames of the SDK are left out."""
    sdk = PurePath(__file__).parent
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if PurePath(frame.filename).parent != sdk]
    places = [f"    at {frame.name} ({PurePath(frame.filename).name}:{frame.lineno})" for frame in reversed(frames)]
    return "\n".join([f"{type(problem).__name__}: {problem}", *places])
