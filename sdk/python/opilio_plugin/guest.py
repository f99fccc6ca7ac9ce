"""The bindings of a component. The toolchain generates them into `wit_world` during the build."""

from importlib import import_module
from typing import Any

from . import host, wire
from .component import Component, Refused

#: The contract's interfaces and their functions, with their names in Python.
EXPORTS = {
    "Setup": ("describe", "configure"),
    "Extractor": ("extract",),
    "Filter": ("judge_candidates", "judge_document"),
    "DigestStripper": ("strip",),
    "ChangeEvaluator": ("compare",),
    "WaitEvaluator": ("evaluate",),
    "Precedence": ("rank_candidates", "rank_queue"),
    "Observer": ("observe", "report"),
    "PageBehavior": ("step",),
}


class Generated(wire.Bindings):
    """Finds classes by their names in the generated modules."""

    def __init__(self, interfaces: list[str]):
        self.modules = [import_module(f"wit_world.exports.{name}") for name in interfaces]
        self.modules.append(import_module("wit_world.imports.types"))

    def __getattr__(self, name: str) -> Any:
        for module in self.modules:
            if hasattr(module, name):
                found = getattr(module, name)
                setattr(self, name, found)
                return found
        raise AttributeError(f"the contract has no {name}")

    def record(self, name: str, values: dict[str, Any]) -> Any:
        return getattr(self, name)(**values)

    def case(self, variant: wire.Variant, case: str, *value: Any) -> Any:
        if variant.enum:
            return getattr(getattr(self, variant.name), case.upper().replace("-", "_"))
        words = "".join(word.capitalize() for word in case.split("-"))
        return getattr(self, f"{variant.name}_{words}")(*value)


class Imports:
    """The contract's imports."""

    def __init__(self) -> None:
        self._log = import_module("wit_world.imports.log")
        self.count = import_module("wit_world.imports.counters").count
        tables = import_module("wit_world.imports.tables")
        self.kind_of, self.find, self.find_candidates = tables.kind_of, tables.find, tables.find_candidates

    def write(self, level: str, message: str) -> None:
        """`log.write`."""
        self._log.write(self._log.Level[level.upper()], message)


def exports(component: Component, interfaces: list[str]) -> dict[str, type]:
    """Returns the classes that the toolchain expects, one for each interface."""
    err = import_module("componentize_py_types").Err
    wire.connect(Generated(interfaces))
    host.connect(Imports())

    def forward(name: str) -> Any:
        def call(self: Any, *arguments: Any) -> Any:
            try:
                return getattr(component, name)(*arguments)
            except Refused as refused:
                raise err(refused.value) from None

        return call

    wanted = {"".join(word.capitalize() for word in name.split("_")) for name in interfaces}
    return {
        interface: type(interface, (), {name: forward(name) for name in functions})
        for interface, functions in EXPORTS.items()
        if interface in wanted
    }
