"""Between the records that plugins write and those of the bindings. How each is turned follows from its annotations, once,
when the module is loaded; what does not fit them is said with its place."""

from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Callable, Union, get_args, get_origin, get_type_hints

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Later than any clock; what lies behind it is read as this.
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)


@dataclass(frozen=True)
class Variant:
    """A variant of the contract: its name, the cases without a value, and those with one by their Python type."""

    name: str
    cases: tuple[str, ...] = ()
    payloads: dict[str, type] = field(default_factory=dict, hash=False)
    #: What is not among the cases is the case `other`.
    other: bool = False
    enum: bool = False


class WrongType(TypeError):
    """What a plugin answered is not what the contract wants."""

    def __init__(self, value: Any, wanted: str):
        got = "nothing" if value is None else f"{type(value).__name__} {value!r:.80}"
        super().__init__(f"must be {wanted}, not {got}")
        self.place = ""

    def within(self, place: str) -> "WrongType":
        """The same, seen from one step further out."""
        self.place = f"{place}{'.' if self.place and not self.place.startswith('[') else ''}{self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place or 'the answer'} {super().__str__()}"


class Bindings:
    """How the bindings' values are made. In a component `guest.py` has them, natively `double.py`."""

    def record(self, name: str, values: dict[str, Any]) -> Any:
        """A record."""
        raise NotImplementedError

    def case(self, variant: Variant, case: str, *value: Any) -> Any:
        """A case of a variant, or a value of an enumeration."""
        raise NotImplementedError


_bindings = Bindings()


def bindings() -> Bindings:
    """Those in use."""
    return _bindings


def connect(made: Bindings) -> None:
    """Puts the bindings in their place."""
    global _bindings
    _bindings = made


Turn = Callable[[Any], Any]


@cache
def lowering(hint: Any) -> Turn:
    """From a value of this type to that of the bindings."""
    if get_origin(hint) is Annotated:
        kind, variant = get_args(hint)
        return _lower_variant(variant)
    inner = _optional(hint)
    if inner is not None:
        lower = lowering(inner)
        return lambda value: None if value is None else lower(value)
    if get_origin(hint) is list:
        return _lower_list(lowering(get_args(hint)[0]))
    if is_dataclass(hint):
        return _lower_record(hint)
    return _SCALARS[hint]


def _exactly(kind: type, wanted: str) -> Turn:
    def lower(value: Any) -> Any:
        # True is an int, and an offset it is not.
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
            raise WrongType(value, wanted)
        return value

    return lower


def _instant(value: Any) -> int:
    if not isinstance(value, datetime) or value.tzinfo is None or value < EPOCH:
        raise WrongType(value, "a datetime with a time zone, of 1970 or later")
    return (value - EPOCH) // timedelta(milliseconds=1)


def _duration(value: Any) -> int:
    if not isinstance(value, timedelta) or value < timedelta():
        raise WrongType(value, "a timedelta that is not negative")
    return value // timedelta(milliseconds=1)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise WrongType(value, "bytes")
    return bytes(value)


_SCALARS: dict[Any, Turn] = {
    str: _exactly(str, "a str"),
    int: _exactly(int, "an int that is not negative"),
    bool: _exactly(bool, "True or False"),
    bytes: _bytes,
    datetime: _instant,
    timedelta: _duration,
}


def _lower_list(lower: Turn) -> Turn:
    def each(value: Any) -> list[Any]:
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            raise WrongType(value, "a list")
        lowered = []
        for item in value:
            try:
                lowered.append(lower(item))
            except WrongType as wrong:
                raise wrong.within(f"[{len(lowered)}]")
        return lowered

    return each


def _lower_record(kind: type) -> Turn:
    from .records import NAMES

    name = NAMES.get(kind, kind.__name__)
    turns: list[tuple[str, Turn]] = []

    def lower(value: Any) -> Any:
        if not isinstance(value, kind):
            raise WrongType(value, f"a {kind.__name__}")
        if not turns:
            hints = _hints(kind)
            turns.extend((one.name, lowering(hints[one.name])) for one in fields(kind))
        values = {}
        for field_name, turn in turns:
            try:
                values[field_name] = turn(getattr(value, field_name))
            except WrongType as wrong:
                raise wrong.within(field_name)
        return _bindings.record(name, values)

    return lower


def _lower_variant(variant: Variant) -> Turn:
    known = [*variant.cases, *variant.payloads]

    def lower(value: Any) -> Any:
        for case, kind in variant.payloads.items():
            if isinstance(value, kind):
                # A class of its own stands for its one field.
                payload = value if not is_dataclass(kind) else getattr(value, fields(kind)[0].name)
                hint = kind if not is_dataclass(kind) else _hints(kind)[fields(kind)[0].name]
                return _bindings.case(variant, case, lowering(hint)(payload))
        if value in variant.cases:
            return _bindings.case(variant, value)
        if variant.other and isinstance(value, str):
            return _bindings.case(variant, "other", value)
        raise WrongType(value, f"one of {', '.join(known)}")

    return lower


@cache
def raising(hint: Any) -> Turn:
    """From a value of the bindings to one of this type."""
    if get_origin(hint) is Annotated:
        return case_name
    inner = _optional(hint)
    if inner is not None:
        turn = raising(inner)
        return lambda value: None if value is None else turn(value)
    if get_origin(hint) is list:
        turn = raising(get_args(hint)[0])
        return lambda value: [turn(item) for item in value]
    if hint is datetime:
        return lambda value: EPOCH + timedelta(milliseconds=min(value, LAST_MS))
    if hint is timedelta:
        return lambda value: timedelta(milliseconds=min(value, LAST_MS))
    if is_dataclass(hint):
        hints = _hints(hint)
        turns = [(one.name, raising(hints[one.name])) for one in fields(hint)]
        return lambda value: hint(**{name: turn(getattr(value, name)) for name, turn in turns})
    return lambda value: value


def case_name(value: Any) -> str:
    """The name of a case, as the contract writes it; of `other` that which it holds."""
    if isinstance(value, str):
        return value
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    if hasattr(value, "value"):
        return value.value
    # The bindings call a case's class `Stage_PreFetch`.
    words = type(value).__name__.partition("_")[2]
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in words).lstrip("-")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _optional(hint: Any) -> Any:
    """The type that this one or None is; None where it is not so."""
    if get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
        rest = [kind for kind in get_args(hint) if kind is not NoneType]
        return rest[0] if len(rest) == 1 else Union[tuple(rest)]
    return None
