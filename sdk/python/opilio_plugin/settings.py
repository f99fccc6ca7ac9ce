"""A plugin's settings in the profile. The annotations, defaults and descriptions of a dataclass become their JSON Schema."""

import json
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


class SettingsFault(Exception):
    """An error in a setting, raised by a plugin's `__init__`, with a JSON Pointer such as `/patterns/0`."""

    def __init__(self, pointer: str, problem: str):
        super().__init__(f"{pointer}: {problem}")
        self.pointer, self.problem = pointer, problem


class SettingsFaults(ExceptionGroup):
    """Several errors: `raise SettingsFaults.of(faults)`."""

    @classmethod
    def of(cls, faults: list[SettingsFault]) -> "SettingsFaults":
        """Joins several errors into one."""
        return cls("settings", faults)


def setting(
    default: Any = MISSING,
    description: str = "",
    *,
    overridable: bool = False,
    expert: bool = False,
    level: Literal["info", "warning", "error"] | None = None,
    table: bool = False,
    **schema: Any,
) -> Any:
    """Declares a setting. Operators read the description. `schema` has further keywords of JSON Schema, such as `minimum`.

    `overridable`: overrides may change the setting. `expert`: few operators need it. `level`: the effect of a value outside
    the schema. `table`: the value is the name of a table, which the profile must have.
    """
    about = {
        "description": description,
        "x-opilio-overridable": overridable,
        "x-opilio-expert": expert,
        "x-opilio-level": level,
        "x-opilio-table": table,
    }
    metadata = {"schema": {**schema, **{name: value for name, value in about.items() if value}}}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def _name(one: Field[Any]) -> str:
    return one.name.replace("_", "-")


def _default(one: Field[Any]) -> Any:
    return one.default_factory() if one.default_factory is not MISSING else one.default


def schema_of(settings: type | None) -> dict[str, Any]:
    """Returns the schema of a settings dataclass. None: no settings."""
    schema: dict[str, Any] = {"type": "object", "additionalProperties": False, "properties": {}}
    required = []
    hints = get_type_hints(settings) if settings else {}
    for one in fields(settings) if settings else ():
        made = {**_schema(hints[one.name], f"{settings.__name__}.{one.name}"), **one.metadata.get("schema", {})}
        if _default(one) is MISSING:
            required.append(_name(one))
        elif _default(one) is not None:
            made["default"] = _default(one)
        schema["properties"][_name(one)] = made
    return {**schema, "required": required} if required else schema


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(hint: Any, place: str) -> dict[str, Any]:
    arguments = get_args(hint)
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if get_origin(hint) is list:
        return {"type": "array", "items": _schema(arguments[0], place)}
    if get_origin(hint) is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _schema(arguments[1], place)}
    if get_origin(hint) is Literal:
        return {"enum": list(arguments)}
    if get_origin(hint) in (Union, UnionType) and NoneType in arguments and len(arguments) == 2:
        return _schema(next(kind for kind in arguments if kind is not NoneType), place)
    if is_dataclass(hint):
        return schema_of(hint)
    known = "str, int, float, bool, Literal, list, dict[str, …] or a dataclass of these"
    raise TypeError(f"{place} has type {hint}: a setting must be {known}")


def parse_settings(settings: type | None, given: str) -> Any:
    """Returns the settings of a JSON object. Checks them, because native tests may pass settings that do not match the schema."""
    values = json.loads(given)
    if settings is not None:
        return _convert(settings, values, "")
    if values:
        raise SettingsFault(f"/{next(iter(values))}", "unknown setting; the plugin has none")
    return None


def _convert(kind: Any, value: Any, pointer: str) -> Any:
    if is_dataclass(kind):
        if not isinstance(value, dict):
            raise SettingsFault(pointer, "not an object")
        hints, made = get_type_hints(kind), {}
        known = {_name(one): one for one in fields(kind)}
        for name, inner in value.items():
            if name not in known:
                raise SettingsFault(f"{pointer}/{name}", f"unknown setting; known settings: {', '.join(known) or 'none'}")
            field_name = known[name].name
            made[field_name] = _convert(hints[field_name], inner, f"{pointer}/{name}")
        for name, one in known.items():
            if one.name not in made and _default(one) is MISSING:
                raise SettingsFault(f"{pointer}/{name}", "is required")
        return kind(**made)
    arguments = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        inner = next(one for one in arguments if one is not NoneType)
        return None if value is None else _convert(inner, value, pointer)
    if get_origin(kind) is list and isinstance(value, list):
        return [_convert(arguments[0], item, f"{pointer}/{index}") for index, item in enumerate(value)]
    if get_origin(kind) is dict and isinstance(value, dict):
        return {name: _convert(arguments[1], item, f"{pointer}/{name}") for name, item in value.items()}
    if get_origin(kind) is Literal and value in arguments:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind in _TYPES and isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    is_choice = get_origin(kind) is Literal
    wanted = f"one of {', '.join(map(str, arguments))}" if is_choice else f"of type {_schema(kind, pointer)['type']}"
    raise SettingsFault(pointer, f"not {wanted}")
