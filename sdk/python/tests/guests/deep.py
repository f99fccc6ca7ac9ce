"""A second file for tracebacks."""


def deep(uri: str) -> None:
    raise ValueError(f"nothing is good about {uri}")
