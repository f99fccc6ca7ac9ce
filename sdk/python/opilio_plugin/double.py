"""Handles and bindings for native tests, which run without a host. Handles return the facts of a test or case, which are dicts.
The bindings' values are JSON with the contract's names."""

from types import SimpleNamespace
from typing import Any

from . import wire
from .records import Candidate, Finished


class Json(wire.Bindings):
    """Records are dicts, cases are `"name"` or `{"name": value}`."""

    def record(self, name: str, values: dict[str, Any]) -> Any:
        return {field.replace("_", "-"): value for field, value in values.items()}

    def case(self, variant: wire.Variant, case: str, *value: Any) -> Any:
        if case == "other" and variant.other:
            return value[0]
        return {case: value[0]} if value else case


def _record(facts: dict[str, Any], **defaults: Any) -> SimpleNamespace:
    """Returns facts as a record of the bindings."""
    return SimpleNamespace(**defaults | {name.replace("-", "_"): _value(value) for name, value in facts.items()})


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _record(value)
    return [_value(item) for item in value] if isinstance(value, list) else value


class _FactsHandle:
    """A handle whose methods return the fact of the same name, or its default."""

    def __init__(self, facts: dict[str, Any], **defaults: Any):
        self.facts = {name.replace("-", "_"): value for name, value in facts.items()}
        self._defaults = defaults
        kept = self.facts.get("kept") or {}
        self.kept = {place: dict(kept.get(place) or {}) for place in ("uri", "site")}
        self.notes = {note["name"]: note["value"] for note in self.facts.get("notes") or ()}

    def __getattr__(self, name: str) -> Any:
        if name not in self._defaults:
            raise AttributeError(name)
        value = self.facts.get(name, self._defaults[name])
        return lambda: _value(value)

    def note(self, name: str) -> str | None:
        return self.notes.get(name)

    def attribute(self, name: str) -> Any:
        return self._kept_value("uri", name)

    def site_value(self, name: str) -> Any:
        return self._kept_value("site", name)

    def set_attribute(self, name: str, value: str) -> None:
        self._keep_value("uri", name, value)

    def set_site_value(self, name: str, value: str) -> None:
        self._keep_value("site", name, value)

    def _kept_value(self, place: str, name: str) -> Any:
        kept = self.kept[place].get(name)
        return None if kept is None else _record(kept)

    def _keep_value(self, place: str, name: str, value: str) -> None:
        # The host would set the version of the description.
        self.kept[place][name] = {"version": 0, "value": value}
        if not value:
            del self.kept[place][name]


class DocumentHandle(_FactsHandle):
    """The resource `document`. Tests read the plugin's `annotations`, `notes` and `kept` values."""

    def __init__(self, facts: dict[str, Any]):
        uri = facts.get("uri", "http://example.com/")
        super().__init__(
            facts,
            uri=uri,
            base=uri,
            status=200,
            headers=[],
            media_type="application/octet-stream",
            charset=None,
            fragment=None,
        )
        content = facts.get("bytes")
        self._content = facts.get("text", "").encode() if content is None else bytes(content)
        self.annotations: list[str] = []

    def header(self, name: str) -> list[str]:
        return [one.value for one in self.headers() if one.name.lower() == name.lower()]

    def length(self) -> int:
        return len(self._content)

    def read(self, offset: int, length: int) -> bytes:
        return self._content[offset : offset + length]

    def text(self) -> str:
        return self.facts.get("text") or self._content.decode(self.charset() or "utf-8", errors="replace")

    def set_note(self, name: str, value: str) -> None:
        self.notes[name] = value

    def annotate(self, annotation: str) -> None:
        self.annotations.append(annotation)


def candidate(facts: dict[str, Any]) -> SimpleNamespace:
    """Returns a candidate of the bindings."""
    defaults = {name: getattr(Candidate(""), name) for name in Candidate.__slots__}
    return _record(facts, **defaults)


def finished(facts: dict[str, Any]) -> SimpleNamespace:
    """Returns an event of the bindings."""
    defaults = {name: getattr(Finished(wire.EPOCH, ""), name) for name in Finished.__slots__}
    return _record(facts, **defaults | {"at": 0})


class VisitHandle(_FactsHandle):
    """The resource `visit`."""

    def __init__(self, facts: dict[str, Any]):
        super().__init__(
            facts,
            now=0,
            status=0,
            media_type="",
            state="new",
            size=None,
            last_wait=None,
            overdue=0,
            visits=0,
            versions=0,
            outlinks=0,
            inlinks=0,
        )

    def candidate(self) -> Any:
        return candidate(self.facts.get("candidate", {}))

    def history(self) -> list[Any]:
        return [_record(one, **{"at": 0, "status": 0, "state": "new", "size": None}) for one in self.facts.get("history", ())]

    def signals(self) -> list[Any]:
        return [_record(one, at=0, source="", modified=None) for one in self.facts.get("signals", ())]

    def neighbourhood(self) -> list[Any]:
        defaults = {"shares": "", "documents": 0, "visits": 0, "changes": 0, "observed": 0}
        return [_record(one, **defaults) for one in self.facts.get("neighbourhood", ())]

    def validator(self, name: str) -> str | None:
        validators = {one["name"].lower(): one["value"] for one in self.facts.get("validators", ())}
        return validators.get(name.lower())

    def measure(self, name: str) -> float | None:
        return self.facts.get("measures", {}).get(name)


class QueueHandle(_FactsHandle):
    """The resource `queue`."""

    def __init__(self, facts: dict[str, Any]):
        super().__init__(facts, name="", queued=0, succeeded=0, failed=0, bytes=0, best=None, base=0, now=0)


class PageHandle(_FactsHandle):
    """The resource `page`. `counts` has numbers of elements by selector."""

    def __init__(self, facts: dict[str, Any]):
        super().__init__(
            facts,
            uri="http://example.com/",
            title="",
            elements=0,
            text_length=0,
            scroll_height=0,
            scroll_top=0,
            window_height=800,
            requests_in_flight=0,
            time_used=0,
            time_left=60_000,
            step=0,
            steps_left=50,
        )

    def count(self, selector: str) -> int | None:
        return self.facts.get("counts", {}).get(selector)

    def results(self) -> list[Any]:
        return self.facts.get("results", [])


class CandidatesHandle:
    """The resource `candidates`."""

    def __init__(self, facts: list[dict[str, Any]]):
        self.all = [candidate(one) for one in facts]

    def length(self) -> int:
        return len(self.all)

    def seeds(self) -> list[bool]:
        return [one.seed for one in self.all]

    def get(self, index: int) -> Any:
        return self.all[index]

    def __getattr__(self, name: str) -> Any:
        singular = {"addresses": "address"}.get(name, name.removesuffix("s"))
        if singular not in Candidate.__slots__:
            raise AttributeError(name)
        return lambda: "".join(f"{getattr(one, singular) or ''}\n" for one in self.all)


class Host:
    """The contract's imports. Tests read `logged` and `counted`, and set `tables`."""

    def __init__(self, tables: dict[str, Any] | None = None):
        self.tables = tables or {}
        self.logged: list[tuple[str, str]] = []
        self.counted: dict[str, int] = {}

    def write(self, level: str, message: str) -> None:
        self.logged.append((level, message))

    def count(self, name: str, n: int) -> None:
        self.counted[name] = self.counted.get(name, 0) + n

    def kind_of(self, table: str) -> str | None:
        return self.tables.get(table, {}).get("kind")

    def find(self, table: str, key: str) -> Any:
        kind = self.kind_of(table)
        if kind not in (None, "surt-prefixes", "key-values"):
            raise NotImplementedError(f"native tests have no tables of {kind}: run the case with opilio plugin test")
        rows = self.tables.get(table, {}).get("rows", ())
        if kind == "surt-prefixes":
            found = max((row for row in rows if key.startswith(row["key"])), key=lambda row: len(row["key"]), default=None)
        else:
            found = next((row for row in reversed(rows) if row["key"] == key), None)
        return None if found is None else _record(found, value="")

    def find_candidates(self, table: str, candidates: CandidatesHandle) -> list[bool]:
        by = "surt" if self.kind_of(table) == "surt-prefixes" else "uri"
        return [self.find(table, getattr(one, by)) is not None for one in candidates.all]
