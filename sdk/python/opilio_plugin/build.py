"""From a plugin's folder to a component: its pyproject.toml, the world of its kinds, componentize-py. A project of sources alone is
put into a snapshot of the interpreter that an earlier build has made."""

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
from .snapshots import cached, is_standard, standard_modules

#: The package's folder.
PACKAGE = Path(__file__).parent
#: Names the folder of the tools that all projects share; set by `opilio plugin build`.
TOOLCHAINS = "OPILIO_TOOLCHAINS"
#: The version that was tried.
PINNED = "componentize-py==0.25.1"
#: Where a project keeps what it needs of others: `pip install --target vendor …`, pure Python alone.
VENDOR = "vendor"


class ProjectFault(Exception):
    """The project does not build; the message says why."""


class MissingTool(Exception):
    """A tool is not installed; the message says which, and how to get it."""


@dataclass
class Project:
    """A plugin's folder."""

    folder: Path
    name: str
    version: str

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """What its pyproject.toml says."""
        file = folder / "pyproject.toml"
        if not file.is_file():
            raise ProjectFault(f"{folder} is no plugin of Python: it has no pyproject.toml")
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
        """The list `plugins` of its plugin.py, loaded natively."""
        sys.path[:0] = [str(self.folder), str(self.folder / VENDOR)]
        try:
            module = importlib.import_module("plugin")
            if not hasattr(module, "plugins"):
                raise ProjectFault("plugin.py names no plugins: it needs a line such as plugins = [MyPlugin]")
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
    """Builds the plugin in `folder`, to `out` or NAME.wasm beside its pyproject.toml. Says which plugins are in it."""
    project = Project.read(folder)
    before = set(sys.modules)
    plugins = project.plugins()
    # What is imported by a name that the sources compute.
    loaded = [name for name in set(sys.modules) - before if is_standard(name)]
    tool = componentize_py(folder)
    kinds = sorted({kind for plugin in plugins for kind in plugin.describe(project.version).kinds})
    file = out or folder / f"{project.name}.wasm"
    unfinished = Path(f"{file}.new")
    sources = _sources(folder)
    if sources is None:
        parts = [entry for entry in sorted(folder.iterdir()) if _is_part(entry)]
        _componentize(tool, kinds, _OF_FILES.format(version=project.version), parts, folder / VENDOR, unfinished)
    else:
        packed = late.packed(project.version, sources)
        modules = sorted({*standard_modules(sources.values()), *loaded})
        _put_into_snapshot(tool, kinds, packed, modules, unfinished)
    os.replace(unfinished, file)
    return [plugin.name for plugin in plugins]


#: The module that the toolchain looks into, where the sources are part of the snapshot.
_OF_FILES = """\
from opilio_plugin.component import Component
from plugin import plugins

component = Component(plugins, {version!r})
"""

#: The same, where they come later. Modules that this interpreter does not have are not needed on this system.
_OF_SNAPSHOT = """\
from importlib import import_module

from opilio_plugin.component import Component
from opilio_plugin.late import Late, place

for name in {modules!r}:
    try:
        import_module(name)
    except Exception:
        pass
component = Component.of(Late(place({size})))
"""


def _sources(folder: Path) -> dict[str, str] | None:
    """The project's files, by their paths. None where some are not sources: those must be there when a module is loaded."""
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
    """Whether it belongs to the plugin: a folder's virtual environment and cases do not."""
    return entry.suffix == ".py" or (entry / "__init__.py").is_file()


def _put_into_snapshot(tool: Path, kinds: list[str], packed: bytes, modules: list[str], out: Path) -> None:
    """Writes the component: the sources in a snapshot of the interpreter, which later builds use again."""
    # Large steps, so that a project that grows seldom needs another snapshot.
    size = 1 << max(16, len(packed).bit_length())
    sdk = [*sorted(PACKAGE.glob("*.py")), *sorted((PACKAGE / "wit").glob("*.wit"))]
    digests = [f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in sdk]
    toolchain = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    main = _OF_SNAPSHOT.format(modules=modules, size=size)
    snapshot = cached(
        [toolchain, main, *kinds, *digests],
        lambda unfinished: _componentize(tool, kinds, main, [], None, unfinished),
    )
    out.write_bytes(late.put(snapshot.read_bytes(), packed))


def _componentize(tool: Path, kinds: list[str], main: str, parts: list[Path], vendor: Path | None, out: Path) -> None:
    """Runs the toolchain on the SDK, some files and the module that makes the component."""
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
            # Hashes of texts would otherwise differ from build to build.
            env={**os.environ, "PYTHONHASHSEED": "0"},
            stdout=sys.stderr,
        )
        if run.returncode:
            raise ProjectFault("componentize-py failed")
        shutil.copyfile(component, out)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "wit"), dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def componentize_py(folder: Path) -> Path:
    """The toolchain: the project's own, that of the environment in use, the shared one, or one in `PATH`."""
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
    """A world of these kinds, beside the contract."""
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
