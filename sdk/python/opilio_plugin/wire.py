"""Conversion between the records of plugins and those of the bindings: lowering to the bindings, lifting from them. It follows the
annotations of the records. The error for a wrong type names the place of the value."""

from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Callable, NewType, Union, get_args, get_origin, get_type_hints

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The last instant that a `datetime` can represent. Later instants become this one.
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(milliseconds=1)

#: An int that may be negative.
Signed = NewType("Signed", int)


@dataclass(frozen=True)
class Variant:
    """A variant of the contract: its name, the cases without a value, and the Python types of those with a value."""

    name: str
    cases: tuple[str, ...] = ()
    payloads: dict[str, type] = field(default_factory=dict, hash=False)
    #: Other texts become the case `other`.
    other: bool = False
    enum: bool = False


class WrongType(TypeError):
    """An answer of a plugin that does not match the contract."""

    def __init__(self, value: Any, wanted: str):
        got = "nothing" if value is None else f"{type(value).__name__} {value!r:.80}"
        super().__init__(f"must be {wanted}, not {got}")
        self.place = ""

    def within(self, place: str) -> "WrongType":
        """Returns the error with its place prefixed by that of the enclosing value."""
        self.place = f"{place}{'.' if self.place and not self.place.startswith('[') else ''}{self.place}"
        return self

    def __str__(self) -> str:
        return f"{self.place or 'the answer'} {super().__str__()}"


class Bindings:
    """Makes values of the bindings. A component uses those of `guest.py`, native tests those of `double.py`."""

    def record(self, name: str, values: dict[str, Any]) -> Any:
        """Makes a record."""
        raise NotImplementedError

    def case(self, variant: Variant, case: str, *value: Any) -> Any:
        """Makes a case of a variant, or a value of an enumeration."""
        raise NotImplementedError


_bindings = Bindings()


def bindings() -> Bindings:
    """Returns the bindings in use."""
    return _bindings


def connect(made: Bindings) -> None:
    """Sets the bindings to use."""
    global _bindings
    _bindings = made


Converter = Callable[[Any], Any]


@cache
def lowering(hint: Any) -> Converter:
    """Returns the conversion from values of this type to those of the bindings."""
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


def _exactly(kind: type, wanted: str) -> Converter:
    def lower(value: Any) -> Any:
        # True is an int in Python, but not an offset.
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
            raise WrongType(value, wanted)
        return value

    return lower


def _signed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise WrongType(value, "an int")
    return value


def _instant(value: Any) -> int:
    if not isinstance(value, datetime) or value.tzinfo is None or value < EPOCH:
        raise WrongType(value, "a datetime with a time zone, in 1970 or later")
    return (value - EPOCH) // timedelta(milliseconds=1)


def _duration(value: Any) -> int:
    if not isinstance(value, timedelta) or value < timedelta():
        raise WrongType(value, "a non-negative timedelta")
    return value // timedelta(milliseconds=1)


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise WrongType(value, "bytes")
    return bytes(value)


_SCALARS: dict[Any, Converter] = {
    str: _exactly(str, "a str"),
    int: _exactly(int, "a non-negative int"),
    Signed: _signed,
    bool: _exactly(bool, "True or False"),
    bytes: _bytes,
    datetime: _instant,
    timedelta: _duration,
}


def _lower_list(lower: Converter) -> Converter:
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


def _lower_record(kind: type) -> Converter:
    from .records import NAMES

    name = NAMES.get(kind, kind.__name__)
    lowerings: list[tuple[str, Converter]] = []

    def lower(value: Any) -> Any:
        if not isinstance(value, kind):
            raise WrongType(value, f"a {kind.__name__}")
        if not lowerings:
            hints = _hints(kind)
            lowerings.extend((one.name, lowering(hints[one.name])) for one in fields(kind))
        values = {}
        for field_name, lower_field in lowerings:
            try:
                values[field_name] = lower_field(getattr(value, field_name))
            except WrongType as wrong:
                raise wrong.within(field_name)
        return _bindings.record(name, values)

    return lower


def _lower_variant(variant: Variant) -> Converter:
    known = [*variant.cases, *variant.payloads]

    def lower(value: Any) -> Any:
        for case, kind in variant.payloads.items():
            if isinstance(value, kind):
                return _bindings.case(variant, case, *_payload(value, kind))
        if value in variant.cases:
            return _bindings.case(variant, value)
        if variant.other and isinstance(value, str):
            return _bindings.case(variant, "other", value)
        raise WrongType(value, f"one of {', '.join(known)}")

    return lower


def _payload(value: Any, kind: type) -> list[Any]:
    """Returns the value of a case, if it has one. A class with one field stands for that field."""
    if is_dataclass(kind) and len(fields(kind)) < 2:
        return [lowering(_hints(kind)[one.name])(getattr(value, one.name)) for one in fields(kind)]
    return [lowering(kind)(value)]


@cache
def lifting(hint: Any) -> Converter:
    """Returns the conversion from values of the bindings to those of this type."""
    if get_origin(hint) is Annotated:
        return case_name
    inner = _optional(hint)
    if inner is not None:
        lift = lifting(inner)
        return lambda value: None if value is None else lift(value)
    if get_origin(hint) is list:
        lift = lifting(get_args(hint)[0])
        return lambda value: [lift(item) for item in value]
    if hint is datetime:
        return lambda value: EPOCH + timedelta(milliseconds=min(value, LAST_MS))
    if hint is timedelta:
        return lambda value: timedelta(milliseconds=min(value, LAST_MS))
    if is_dataclass(hint):
        hints = _hints(hint)
        lifts = [(one.name, lifting(hints[one.name])) for one in fields(hint)]
        return lambda value: hint(**{name: lift(getattr(value, name)) for name, lift in lifts})
    return lambda value: value


def case_of(value: Any) -> tuple[str, Any]:
    """Returns the name of a case in the contract, and its value. For the case `other`, the name is its text."""
    if isinstance(value, dict):
        [(name, payload)] = value.items()
    elif isinstance(value, str):
        name, payload = value, None
    else:
        name, payload = _name_of_class(value), getattr(value, "value", None)
    return (payload, None) if name == "other" else (name, payload)


def case_name(value: Any) -> str:
    """Returns the name of a case in the contract. For the case `other`, the name is its text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Enum):
        return value.name.lower().replace("_", "-")
    if hasattr(value, "value"):
        return value.value
    return _name_of_class(value)


def _name_of_class(value: Any) -> str:
    # The class of a case has a name such as `Stage_PreFetch`.
    words = type(value).__name__.partition("_")[2]
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in words).lstrip("-")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _optional(hint: Any) -> Any:
    """Returns the type without None if the type is optional, or else None."""
    if get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
        rest = [kind for kind in get_args(hint) if kind is not NoneType]
        return rest[0] if len(rest) == 1 else Union[tuple(rest)]
    return None
