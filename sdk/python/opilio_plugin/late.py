"""Sources that are written into a component after its snapshot was made. Most of a build's time goes into the interpreter. One
snapshot of it serves all plugins that import the same modules of the standard library."""

import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Marks the place for the sources. It is computed, so that it occurs only once in the snapshot.
MARK = bytes(n * 37 % 251 + 1 for n in range(32))
#: Fills the place. A component does not contain runs of zeros.
FILLER = b"\xa5"
#: Number of bytes of the length, which precedes the sources.
LENGTH_BYTES = 4


class NoPlace(Exception):
    """The component has no place for the sources, or one that is too small."""


def place(size: int) -> bytes:
    """Returns a place for sources of this many bytes."""
    return MARK + FILLER * (LENGTH_BYTES + size)


def packed(version: str, sources: dict[str, str]) -> bytes:
    """Returns the packed sources of a project."""
    return json.dumps({"version": version, "sources": sources}).encode()


def put(component: bytes, sources: bytes) -> bytes:
    """Returns the component with the packed sources in their place."""
    at = component.find(place(len(sources)))
    if at < 0:
        raise NoPlace(f"there is no place for {len(sources)} bytes of sources in the component")
    begin = at + len(MARK)
    content = len(sources).to_bytes(LENGTH_BYTES, "little") + sources
    return component[:begin] + content + component[begin + len(content) :]


class Late:
    """A project whose sources are in the place. They are loaded when the plugins are first needed."""

    def __init__(self, place: bytes):
        self._place = place
        self._loaded: tuple[str, list[Any]] | None = None

    def _project(self) -> tuple[str, list[Any]]:
        if self._loaded is None:
            begin = len(MARK) + LENGTH_BYTES
            length = int.from_bytes(self._place[len(MARK) : begin], "little")
            project = json.loads(self._place[begin : begin + length])
            sys.meta_path.insert(0, _Sources(project["sources"]))
            self._loaded = project["version"], list(__import__("plugin").plugins)
        return self._loaded

    @property
    def version(self) -> str:
        """The version of the project."""
        return self._project()[0]

    @property
    def plugins(self) -> list[Any]:
        """The list `plugins` of its plugin.py."""
        return self._project()[1]


class _Sources:
    """Finds and loads modules of the project."""

    def __init__(self, sources: dict[str, str]):
        self.sources = sources

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the module if the project has a file for it."""
        stem = name.replace(".", "/")
        for file, is_package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if file in self.sources:
                spec = ModuleSpec(name, self, origin=file, is_package=is_package)
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """Uses the default."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the module's file."""
        assert module.__spec__ is not None and module.__spec__.origin is not None
        file = module.__spec__.origin
        exec(compile(self.sources[file], file, "exec"), module.__dict__)
