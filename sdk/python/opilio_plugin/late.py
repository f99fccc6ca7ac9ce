"""Sources that a build writes into an existing snapshot of the interpreter. Making the snapshot takes most of a build's time. One
snapshot serves all plugins that import the same modules of the standard library."""

import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Begins the placeholder for the sources. It is computed, so that it occurs only once in the snapshot.
MARK = bytes(n * 37 % 251 + 1 for n in range(32))
#: Fills the placeholder. Zeros would not do: a component does not contain runs of zeros.
FILLER = b"\xa5"
#: Number of bytes of the length, which precedes the sources.
LENGTH_BYTES = 4


class NoPlaceholder(Exception):
    """The component has no placeholder for the sources, or one that is too small."""


def placeholder(size: int) -> bytes:
    """Returns a placeholder for sources of this many bytes."""
    return MARK + FILLER * (LENGTH_BYTES + size)


def pack(version: str, sources: dict[str, str]) -> bytes:
    """Returns the packed sources of a project."""
    return json.dumps({"version": version, "sources": sources}).encode()


def fill(component: bytes, sources: bytes) -> bytes:
    """Returns the component with the packed sources in the placeholder."""
    at = component.find(placeholder(len(sources)))
    if at < 0:
        raise NoPlaceholder(f"the component has no placeholder for {len(sources)} bytes of sources")
    begin = at + len(MARK)
    content = len(sources).to_bytes(LENGTH_BYTES, "little") + sources
    return component[:begin] + content + component[begin + len(content) :]


class LateProject:
    """A project whose sources are in the placeholder. They are loaded when the plugins are first needed."""

    def __init__(self, placeholder: bytes):
        self._placeholder = placeholder
        self._loaded: tuple[str, list[Any]] | None = None

    def _project(self) -> tuple[str, list[Any]]:
        if self._loaded is None:
            begin = len(MARK) + LENGTH_BYTES
            length = int.from_bytes(self._placeholder[len(MARK) : begin], "little")
            project = json.loads(self._placeholder[begin : begin + length])
            sys.meta_path.insert(0, _SourceFinder(project["sources"]))
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


class _SourceFinder:
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
