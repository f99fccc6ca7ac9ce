"""A second file for tracebacks."""


def deep(uri: str) -> None:
    raise ValueError(f"cannot read {uri}")
