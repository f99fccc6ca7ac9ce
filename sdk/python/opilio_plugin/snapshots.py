"""Snapshots of the interpreter in the user's cache."""

import ast
import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

#: Maximum number of snapshots in the cache. Each is 20 MB. The least recently used one is removed.
SNAPSHOTS_MAX = 8


def cached_snapshot(key: Iterable[str], make: Callable[[Path], None]) -> Path:
    """Returns the snapshot of this key. `make` writes a new one to a path."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opilio/python"
    digest = hashlib.sha256("\n".join(key).encode()).hexdigest()
    file = folder / f"{digest[:32]}.wasm"
    if file.is_file():
        os.utime(file)
        return file
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f"{digest[:32]}.{os.getpid()}"
    try:
        make(unfinished)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)
    found = sorted(folder.glob("*.wasm"), key=lambda file: file.stat().st_mtime, reverse=True)
    for old in found[SNAPSHOTS_MAX:]:
        old.unlink(missing_ok=True)
    return file


def standard_modules(sources: Iterable[str]) -> list[str]:
    """Returns the modules of the standard library that these sources import."""
    names: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module)
                # An imported name may be a module.
                names.update(f"{node.module}.{alias.name}" for alias in node.names if alias.name != "*")
    return sorted(filter(is_standard, names))


def is_standard(name: str) -> bool:
    """Checks whether a module is public and part of the standard library."""
    return not name.startswith("_") and name.split(".")[0] in sys.stdlib_module_names
