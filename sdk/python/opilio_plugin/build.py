"""From a plugin's folder to a component: its pyproject.toml, the world of its kinds, componentize-py."""

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

#: The package's folder, and that of the SDK in a checkout.
PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent.parent.parent
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
    plugins = project.plugins()
    tool = componentize_py(folder)
    kinds = sorted({kind for plugin in plugins for kind in plugin.describe(project.version).kinds})
    file = out or folder / f"{project.name}.wasm"
    with tempfile.TemporaryDirectory(prefix="opilio-plugin-") as scratch:
        made = Path(scratch)
        write_world(made / "wit", kinds)
        # Only what belongs to the plugin: a folder's virtual environment and cases do not.
        staged = made / "app"
        staged.mkdir()
        _copy(PACKAGE, staged / "opilio_plugin")
        for entry in sorted(folder.iterdir()):
            if entry.suffix == ".py" or (entry / "__init__.py").is_file():
                _copy(entry, staged / entry.name)
        if (folder / VENDOR).is_dir():
            _copy(folder / VENDOR, staged)
        interfaces = ["setup", *(kind.replace("-", "_") for kind in kinds)]
        (staged / "opilio_component.py").write_text(
            "from opilio_plugin.guest import exports\n"
            "from plugin import plugins\n\n"
            f"globals().update(exports(plugins, {project.version!r}, {interfaces!r}))\n",
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
            raise ProjectFault(f"{folder} does not build")
        shutil.copyfile(component, f"{file}.new")
        os.replace(f"{file}.new", file)
    return [plugin.name for plugin in plugins]


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "wit"), dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def componentize_py(folder: Path) -> Path:
    """The toolchain: the project's own, that of the environment in use, the checkout's, or one in `PATH`."""
    places = [folder / ".venv/bin", Path(sys.executable).parent, CHECKOUT / "target/toolchains/python/bin"]
    found = [place / "componentize-py" for place in places if (place / "componentize-py").is_file()]
    if not found:
        in_path = shutil.which("componentize-py")
        if in_path is None:
            environment = shlex.quote(f"{folder}/.venv")
            raise MissingTool(
                f"{PINNED} is not installed: python3 -m venv {environment} && {environment}/bin/pip install {PINNED}"
            )
        return Path(in_path)
    return found[0]


def write_world(folder: Path, kinds: list[str]) -> None:
    """A world of these kinds, beside the contract."""
    contract = next((place for place in (PACKAGE / "wit", CHECKOUT / "wit") if place.is_dir()), None)
    if contract is None:
        raise ProjectFault(f"{PACKAGE} stands alone: the SDK needs the folder wit/ of its checkout")
    deps = folder / "deps/plugin"
    deps.mkdir(parents=True)
    for file in contract.glob("*.wit"):
        shutil.copyfile(file, deps / file.name)
    version = re.search(r"package opilio:plugin@([^;]+);", (deps / "types.wit").read_text(encoding="utf-8"))
    assert version is not None
    included = "\n".join(f"include opilio:plugin/{kind}-plugin@{version[1]};" for kind in kinds)
    (folder / "world.wit").write_text(f"package opilio:component;\nworld component {{\n{included}\n}}\n", encoding="utf-8")
