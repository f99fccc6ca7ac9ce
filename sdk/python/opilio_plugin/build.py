"""Builds a component from a plugin's folder with componentize-py. If the project has only Python sources, they are written into a
snapshot of the interpreter from an earlier build."""

import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import late
from .snapshots import cached_snapshot, is_standard, standard_modules

#: The folder of this package.
PACKAGE = Path(__file__).parent
#: Environment variable with the folder of shared tools. `opilio plugin build` sets it.
TOOLCHAINS = "OPILIO_TOOLCHAINS"
#: Tested version.
PINNED = "componentize-py==0.25.1"
#: Folder of a project for packages (`pip install --target vendor …`). They must be pure Python.
VENDOR = "vendor"


class ProjectFault(Exception):
    """An error in the project."""


class MissingTool(Exception):
    """A missing tool. The message has the command that installs it."""


@dataclass
class Project:
    """A plugin's folder."""

    folder: Path
    name: str
    version: str

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """Reads a folder's pyproject.toml."""
        file = folder / "pyproject.toml"
        if not file.is_file():
            raise ProjectFault(f"{folder} is not a Python plugin: it has no pyproject.toml")
        try:
            facts = tomllib.loads(file.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise ProjectFault(f"{file}: {problem}") from None
        project = facts.get("project", {})
        if not isinstance(project.get("name"), str):
            raise ProjectFault(f"{file}: [project] has no name")
        if not (folder / "plugin.py").is_file():
            raise ProjectFault(f"{folder} has no plugin.py")
        return cls(folder, project["name"], project.get("version", "0.0.0"))

    def plugins(self) -> list[Any]:
        """Loads plugin.py natively and returns its list `plugins`."""
        sys.path[:0] = [str(self.folder), str(self.folder / VENDOR)]
        try:
            module = importlib.import_module("plugin")
            if not hasattr(module, "plugins"):
                raise ProjectFault("plugin.py does not define `plugins`: it needs a line such as plugins = [MyPlugin]")
            for plugin in module.plugins:
                plugin.describe(self.version)
        except ProjectFault:
            raise
        except Exception as problem:
            place = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            raise ProjectFault(f"plugin.py cannot be loaded: {type(problem).__name__}: {problem} ({where})") from problem
        return list(module.plugins)


def build(folder: Path, out: Path | None) -> list[str]:
    """Builds the plugin in `folder`. Writes `out`, or NAME.wasm beside its pyproject.toml. Returns the names of its plugins."""
    project = Project.read(folder)
    before = set(sys.modules)
    plugins = project.plugins()
    # Includes modules that plugin.py imports by a computed name.
    loaded = [name for name in set(sys.modules) - before if is_standard(name)]
    tool = componentize_py(folder)
    kinds = sorted({kind for plugin in plugins for kind in plugin.describe(project.version).kinds})
    file = out or folder / f"{project.name}.wasm"
    unfinished = Path(f"{file}.new")
    sources = _sources(folder)
    if sources is None:
        parts = [entry for entry in sorted(folder.iterdir()) if _is_part(entry)]
        _componentize(tool, kinds, _MAIN_OF_FILES.format(version=project.version), parts, folder / VENDOR, unfinished)
    else:
        packed = late.pack(project.version, sources)
        modules = sorted({*standard_modules(sources.values()), *loaded})
        _put_into_snapshot(tool, kinds, packed, modules, unfinished)
    os.replace(unfinished, file)
    return [plugin.name for plugin in plugins]


#: The main module of a component whose sources are part of the snapshot.
_MAIN_OF_FILES = """\
from opilio_plugin.component import Component
from plugin import plugins

component = Component(plugins, {version!r})
"""

#: The main module of a component whose sources are written later. Modules that the interpreter lacks are skipped.
_MAIN_OF_SNAPSHOT = """\
from importlib import import_module

from opilio_plugin.component import Component
from opilio_plugin.late import LateProject, placeholder

for name in {modules!r}:
    try:
        import_module(name)
    except Exception:
        pass
component = Component.of(LateProject(placeholder({size})))
"""


def _sources(folder: Path) -> dict[str, str] | None:
    """Returns the project's sources by their paths. None if it has other files: modules may need them when they are loaded."""
    found = [(entry, entry.name) for entry in sorted(folder.iterdir()) if _is_part(entry)]
    if (folder / VENDOR).is_dir():
        found += [(entry, entry.name) for entry in sorted((folder / VENDOR).iterdir())]
    sources: dict[str, str] = {}
    for top, name in found:
        for file in [top] if top.is_file() else sorted(top.rglob("*")):
            path = name if top.is_file() else f"{name}/{file.relative_to(top).as_posix()}"
            if file.is_dir() or "__pycache__" in file.parts or ".dist-info/" in path:
                continue
            if file.suffix not in (".py", ".pyi") and file.name != "py.typed":
                return None
            if file.suffix == ".py":
                sources.setdefault(path, file.read_text(encoding="utf-8"))
    return sources


def _is_part(entry: Path) -> bool:
    """Checks whether an entry of the folder is a module or package of the plugin."""
    return entry.suffix == ".py" or (entry / "__init__.py").is_file()


def _put_into_snapshot(tool: Path, kinds: list[str], packed: bytes, modules: list[str], out: Path) -> None:
    """Writes the component: a cached snapshot of the interpreter with the sources."""
    # Sizes are powers of two, so that a growing project seldom needs another snapshot.
    size = 1 << max(16, len(packed).bit_length())
    sdk = [*sorted(PACKAGE.glob("*.py")), *sorted((PACKAGE / "wit").glob("*.wit"))]
    digests = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sdk]
    toolchain = subprocess.run([tool, "--version"], env=environment_of_tool(), capture_output=True, text=True).stdout
    main = _MAIN_OF_SNAPSHOT.format(modules=modules, size=size)
    snapshot = cached_snapshot(
        [toolchain, main, *kinds, *digests],
        lambda unfinished: _componentize(tool, kinds, main, [], None, unfinished),
    )
    out.write_bytes(late.fill(snapshot.read_bytes(), packed))


def _componentize(tool: Path, kinds: list[str], main: str, parts: list[Path], vendor: Path | None, out: Path) -> None:
    """Runs the toolchain on the SDK, some files and the main module."""
    with tempfile.TemporaryDirectory(prefix="opilio-plugin-") as scratch:
        made = Path(scratch)
        write_world(made / "wit", kinds)
        staged = made / "app"
        staged.mkdir()
        _copy(PACKAGE, staged / "opilio_plugin")
        for part in parts:
            _copy(part, staged / part.name)
        if vendor and vendor.is_dir():
            _copy(vendor, staged)
        interfaces = ["setup", *(kind.replace("-", "_") for kind in kinds)]
        (staged / "opilio_component.py").write_text(
            f"from opilio_plugin.guest import exports\n{main}\nglobals().update(exports(component, {interfaces!r}))\n",
            encoding="utf-8",
        )
        component = made / "component.wasm"
        command = [tool, "-q", "-d", made / "wit", "-w", "component", "componentize", "opilio_component"]
        run = subprocess.run(
            [*command, "-p", staged, "-o", component],
            cwd=made,
            env=environment_of_tool(),
            stdout=sys.stderr,
        )
        if run.returncode:
            raise ProjectFault("componentize-py failed")
        shutil.copyfile(component, out)


def environment_of_tool() -> dict[str, str]:
    """Returns the environment in which the toolchain runs."""
    # The toolchain is a Python program in another folder. A module in the author's PYTHONPATH could replace a module that it imports.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Hashes of texts must be the same in all builds.
    return {**kept, "PYTHONHASHSEED": "0"}


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "wit"), dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def componentize_py(folder: Path) -> Path:
    """Returns the toolchain: from the project, the virtual environment in use, the shared folder, or `PATH`."""
    shared = Path(os.environ.get(TOOLCHAINS) or folder / "toolchains") / "python"
    places = [folder / ".venv/bin", Path(sys.executable).parent, shared / "bin"]
    found = [place / "componentize-py" for place in places if (place / "componentize-py").is_file()]
    if not found:
        in_path = shutil.which("componentize-py")
        if in_path is None:
            environment = shlex.quote(str(shared if TOOLCHAINS in os.environ else folder / ".venv"))
            raise MissingTool(
                f"{PINNED} is not installed: python3 -m venv {environment} && {environment}/bin/pip install {PINNED}"
            )
        return Path(in_path)
    return found[0]


def write_world(folder: Path, kinds: list[str]) -> None:
    """Writes a world of these kinds and the contract."""
    contract = PACKAGE / "wit"
    if not contract.is_dir():
        raise ProjectFault(f"the contract is missing: {PACKAGE} has no folder wit")
    deps = folder / "deps/plugin"
    deps.mkdir(parents=True)
    for file in contract.glob("*.wit"):
        shutil.copyfile(file, deps / file.name)
    version = re.search(r"package opilio:plugin@([^;]+);", (deps / "types.wit").read_text(encoding="utf-8"))
    assert version is not None
    included = "\n".join(f"include opilio:plugin/{kind}-plugin@{version[1]};" for kind in kinds)
    (folder / "world.wit").write_text(f"package opilio:component;\nworld component {{\n{included}\n}}\n", encoding="utf-8")
