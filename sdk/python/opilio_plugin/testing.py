"""Native tests of plugins: documents, visits and pages to call them with, and the cases of a folder. `opilio plugin test` runs the
same cases on the component. Facts have the contract's names. docs/PLUGINS.md has the format of cases."""

import json
from pathlib import Path
from typing import Any

from . import host as imports
from . import wire
from .component import Component, Refused
from .double import CandidatesHandle, DocumentHandle, Host, Json, PageHandle, QueueHandle, VisitHandle, finished
from .plugin import Plugin
from .settings import parse_settings
from .views import Candidates, Document, Page, Queue, Visit


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in given.items()}


def document(text: str = "", **facts: Any) -> Document:
    """Returns a document: `document("<p>", uri="http://example.com/", media_type="text/html")`.

    Its `handle` has the values that the plugin set."""
    return Document(DocumentHandle({"text": text, **_facts(facts)}))


def visit(**facts: Any) -> Visit:
    """Returns a visit. Times and durations are milliseconds."""
    return Visit(VisitHandle(_facts(facts)))


def queue(**facts: Any) -> Queue:
    """Returns a queue."""
    return Queue(QueueHandle(_facts(facts)))


def page(**facts: Any) -> Page:
    """Returns a page in a browser: `page(step=1, counts={"a.next": 1}, results=["done", {"clicked": 2}])`."""
    return Page(PageHandle(_facts(facts)))


def candidates(*facts: dict[str, Any]) -> Candidates:
    """Returns candidates."""
    return Candidates(CandidatesHandle([_facts(one) for one in facts]))


def configured(plugin: type[Plugin], **settings: Any) -> Any:
    """Returns the plugin with these settings. Exceptions of its `__init__` pass through."""
    return plugin(parse_settings(plugin.Settings, json.dumps(_facts(settings))))


def host(**tables: Any) -> Host:
    """Installs a test host for direct calls of a plugin, with these tables. It collects log lines and counters."""
    made = Host(tables)
    imports.connect(made)
    return made


def check_cases(plugins: list[type[Plugin]], folder: str | Path) -> int:
    """Runs the cases of a folder and returns their number. Raises an error that lists all failures. Every plugin must have a case."""
    cases = _read_cases(Path(folder))
    faults = []
    for case in cases:
        try:
            answer = _run_case(plugins, case, Path(folder))
        except Exception as problem:
            faults.append(f"{case['id']}: {type(problem).__name__}: {problem}")
            continue
        if _comparable(answer, case["expected"]) != _comparable(case["expected"], case["expected"]):
            faults.append(f"{case['id']}: expected {json.dumps(case['expected'])}\nanswered {json.dumps(answer)}")
    tested = {case["plugin"] for case in cases}
    faults += [f"{plugin.name} has no case" for plugin in plugins if plugin.name not in tested]
    if faults:
        raise AssertionError("\n".join([f"{len(faults)} failures in {len(cases)} cases:", *faults]))
    return len(cases)


def _read_cases(folder: Path) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    for file in sorted(folder.glob("*.json")):
        try:
            cases += json.loads(file.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ValueError(f"{file}: {problem}") from None
    ids = [case["id"] for case in cases]
    duplicate = next((one for one in ids if ids.count(one) > 1), None)
    if duplicate:
        raise ValueError(f"{folder}: duplicate case id {duplicate}")
    return cases


def _run_case(plugins: list[type[Plugin]], case: dict[str, Any], folder: Path) -> Any:
    """Returns the answer to a case, as JSON with the contract's names."""
    [(call, given)] = case["call"].items()
    made = host()
    wire.connect(Json())
    component = Component(plugins)
    try:
        component.configure(case["plugin"], json.dumps(case.get("settings", {})))
    except Refused as refused:
        if call == "configure":
            return refused.value
        raise ValueError(f"the plugin rejects its settings: {refused.value}") from None
    made.tables = case.get("tables", {})

    def page(name: str = "document") -> DocumentHandle:
        return _page(given.get(name) or {}, folder)

    memory = bytes(given.get("memory", ()))
    match call:
        case "configure":
            return []
        case "extract":
            answer = component.extract([_page(facts, folder) for facts in given["documents"]])
        case "judge-candidates":
            answer = component.judge_candidates(given["stage"], CandidatesHandle(given["candidates"]))
        case "judge-document":
            answer = component.judge_document(given["stage"], page(), VisitHandle(given.get("visit", {})))
        case "strip":
            try:
                answer = {"ok": component.strip(page())}
            except Refused as refused:
                answer = {"error": refused.value}
        case "compare":
            last = given.get("last")
            answer = component.compare(page(), VisitHandle(given.get("visit", {})), None if last is None else bytes(last))
        case "evaluate":
            answer = component.evaluate(VisitHandle(given["visit"]))
        case "rank-candidates":
            whole = page() if given.get("document") is not None else None
            answer = component.rank_candidates(CandidatesHandle(given["candidates"]), whole)
        case "rank-queue":
            answer = component.rank_queue(QueueHandle(given["queue"]))
        case "observe":
            answer = component.observe(memory, [finished(event) for event in given["events"]])
        case "report":
            answer = component.report(memory, given.get("now", 0))
        case "step":
            in_browser = PageHandle(given.get("page") or {})
            answer = component.step(in_browser, VisitHandle(given.get("visit") or {}), memory)
        case _:
            raise ValueError(f"unknown call: {call}")
    return _json(answer)


def _page(facts: dict[str, Any], folder: Path) -> DocumentHandle:
    if "file" in facts:
        return DocumentHandle({**facts, "bytes": (folder / facts["file"]).read_bytes()})
    return DocumentHandle(facts)


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json(field) for name, field in value.items()}
    if isinstance(value, list | bytes):
        return [_json(item) for item in value]
    return value


def _comparable(value: Any, expected: Any) -> Any:
    """Removes fields at their defaults, and reasons and problems that the case does not expect."""
    if isinstance(value, list):
        expected = expected if isinstance(expected, list) else []
        return [_comparable(item, expected[at] if at < len(expected) else None) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    wanted = expected if isinstance(expected, dict) else {}
    free = {name for name in ("reason", "problem") if name not in wanted and "links" not in value}
    bare = {name: _comparable(field, wanted.get(name)) for name, field in value.items() if name not in free}
    return {name: field for name, field in bare.items() if field and (name, field) != ("hop", "link")}
