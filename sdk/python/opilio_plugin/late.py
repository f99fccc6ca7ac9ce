"""Sources that are written into a component after its snapshot was taken. Most of the time of a build goes into the interpreter,
which is the same for all plugins: one snapshot serves every plugin that imports the same modules of the standard library."""

import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Stands before the place for the sources. It is computed, so that it is nowhere else in the snapshot.
MARK = bytes(n * 37 % 251 + 1 for n in range(32))
#: Fills the place. Runs of zeros would not be in the component.
FILLER = b"\xa5"
#: Bytes of the length of the sources, which stands before them.
LENGTH_BYTES = 4


class NoPlace(Exception):
    """The component has no place for the sources, or one that is too small."""


def place(size: int) -> bytes:
    """A place for sources of this many bytes."""
    return MARK + FILLER * (LENGTH_BYTES + size)


def packed(version: str, sources: dict[str, str]) -> bytes:
    """The sources of a project, by the paths of their files."""
    return json.dumps({"version": version, "sources": sources}).encode()


def put(component: bytes, sources: bytes) -> bytes:
    """The component with the packed sources in their place."""
    at = component.find(place(len(sources)))
    if at < 0:
        raise NoPlace(f"there is no place for {len(sources)} bytes of sources in the component")
    begin = at + len(MARK)
    content = len(sources).to_bytes(LENGTH_BYTES, "little") + sources
    return component[:begin] + content + component[begin + len(content) :]


class Late:
    """The project whose sources stand in the place. They are loaded when the plugins are first asked for."""

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
        """The module, if a file of the project holds it."""
        stem = name.replace(".", "/")
        for file, is_package in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if file in self.sources:
                spec = ModuleSpec(name, self, origin=file, is_package=is_package)
                spec.has_location = True
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """As usual."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the file."""
        assert module.__spec__ is not None and module.__spec__.origin is not None
        file = module.__spec__.origin
        exec(compile(self.sources[file], file, "exec"), module.__dict__)
