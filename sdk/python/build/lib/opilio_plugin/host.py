"""What the host gives besides arguments: lines for the operator, counters, tables. In a component these are the contract's
imports; natively those of a test (`testing.host`)."""

from typing import Any

from .records import Row
from .wire import case_name, raising


class NoHost:
    """Where nobody listens."""

    def write(self, level: str, message: str) -> None:
        """`log.write`."""

    def count(self, name: str, n: int) -> None:
        """`counters.count`."""

    def kind_of(self, table: str) -> Any:
        """`tables.kind-of`."""

    def find(self, table: str, key: str) -> Any:
        """`tables.find`."""

    def find_candidates(self, table: str, candidates: Any) -> list[bool]:
        """`tables.find-candidates`."""
        return [False] * candidates.length()


host: Any = NoHost()


def connect(given: Any) -> None:
    """Puts the contract's imports, or a test's, in their place."""
    global host
    host = given


def debug(message: object) -> None:
    """For the plugin's author."""
    host.write("debug", str(message))


def info(message: object) -> None:
    """Worth knowing."""
    host.write("info", str(message))


def warn(message: object) -> None:
    """Worth looking at."""
    host.write("warn", str(message))


def error(message: object) -> None:
    """Something could not be done."""
    host.write("error", str(message))


def count(name: str, n: int = 1) -> None:
    """Adds to the plugin's counter of that name: lower-case words joined by hyphens."""
    host.count(name, n)


class Table:
    """A list that the host holds and keeps current; within one call it does not change."""

    def __init__(self, name: str):
        self.name = name

    @property
    def kind(self) -> str | None:
        """What sort it is, such as `surt-prefixes`; None where the profile names no such table."""
        kind = host.kind_of(self.name)
        return None if kind is None else case_name(kind)

    def find(self, key: str) -> Row | None:
        """The row for a key."""
        return raising(Row | None)(host.find(self.name, key))


def table(name: str) -> Table:
    """The table of this name. While a plugin is configured there are none."""
    return Table(name)
