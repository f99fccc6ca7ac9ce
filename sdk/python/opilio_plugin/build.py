"""From a plugin's folder to a component: its pyproject.toml, the world of its kinds, componentize-py."""

import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The package's folder, and that of the SDK in a checkout.
PACKAGE = Path(__file__).parent
CHECKOUT = PACKAGE.parent.parent.parent
#: The version that was tried.
PINNED = "componentize-py==0.25.1"


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
    #: The module that has `plugins`.
    module: str

    @classmethod
    def read(cls, folder: Path) -> "Project":
        """What its pyproject.toml says: the module is called as the project, with underscores."""
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
        module = project["name"].replace("-", "_")
        if not (folder / f"{module}.py").is_file() and not (folder / module / "__init__.py").is_file():
            raise ProjectFault(f"{folder} has neither {module}.py nor {module}/__init__.py")
        return cls(folder, project["name"], project.get("version", "0.0.0"), module)

    def plugins(self) -> list[Any]:
        """Its list of plugins, from the module, loaded natively."""
        sys.path.insert(0, str(self.folder))
        try:
            module = importlib.import_module(self.module)
            plugins = module.plugins
            for plugin in plugins:
                plugin.describe(self.version)
        except AttributeError as problem:
            if "has no attribute 'plugins'" not in str(problem):
                raise
            raise ProjectFault(f"{self.module} names no plugins: it needs a line such as plugins = [MyPlugin]") from None
        except Exception as problem:
            raise ProjectFault(f"{self.module} cannot be loaded: {type(problem).__name__}: {problem}") from problem
        return list(plugins)


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
        # Only what belongs to the plugin: a folder's virtual environment and tests do not.
        staged = made / "app"
        staged.mkdir()
        _copy(PACKAGE, staged / "opilio_plugin")
        for entry in (folder / f"{project.module}.py", folder / project.module):
            if entry.exists():
                _copy(entry, staged / entry.name)
        interfaces = ["setup", *(kind.replace("-", "_") for kind in kinds)]
        (staged / "opilio_component.py").write_text(
            "from opilio_plugin.guest import exports\n"
            f"from {project.module} import plugins\n\n"
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
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copyfile(source, target)


def componentize_py(folder: Path) -> Path:
    """The toolchain: the project's own, that of the environment in use, the checkout's, or one in `PATH`."""
    places = [folder / ".venv/bin", Path(sys.executable).parent, CHECKOUT / "target/toolchains/python/bin"]
    found = [place / "componentize-py" for place in places if (place / "componentize-py").is_file()]
    if not found:
        in_path = shutil.which("componentize-py")
        if in_path is None:
            raise MissingTool(
                f"{PINNED} is not installed: python3 -m venv {folder}/.venv && {folder}/.venv/bin/pip install {PINNED}"
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
