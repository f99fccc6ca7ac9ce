"""A file of its own, so that tracebacks name two."""


def deep(uri: str) -> None:
    raise ValueError(f"nothing is good about {uri}")
