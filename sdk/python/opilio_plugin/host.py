"""Functions of the host: log lines, counters, tables. A component uses the contract's imports. Native tests use those of
`testing.host`."""

from typing import Any

from .records import Row
from .wire import case_name, lifting


class NoHost:
    """The default without a host."""

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
    """Sets the imports to use."""
    global host
    host = given


def debug(message: object) -> None:
    """Writes a log line for the plugin's author."""
    host.write("debug", str(message))


def info(message: object) -> None:
    """Writes a log line of general interest."""
    host.write("info", str(message))


def warn(message: object) -> None:
    """Writes a log line about something unusual."""
    host.write("warn", str(message))


def error(message: object) -> None:
    """Writes a log line about an error."""
    host.write("error", str(message))


def count(name: str, n: int = 1) -> None:
    """Adds to the plugin's counter of this name: lower-case words joined by hyphens."""
    host.count(name, n)


class Table:
    """A table of the host. It does not change during a call."""

    def __init__(self, name: str):
        self.name = name

    @property
    def kind(self) -> str | None:
        """The kind, such as `surt-prefixes`; None if the profile has no table of this name."""
        kind = host.kind_of(self.name)
        return None if kind is None else case_name(kind)

    def find(self, key: str) -> Row | None:
        """Returns the row for a key."""
        return lifting(Row | None)(host.find(self.name, key))


def table(name: str) -> Table:
    """Returns the table of this name. There are no tables while a plugin is configured."""
    return Table(name)
