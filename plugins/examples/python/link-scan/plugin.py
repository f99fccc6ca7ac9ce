"""Finds URIs in HTML without parsing it. This extractor exists in every language, for comparison."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opilio_plugin import Document, Extractor, Link, SettingsFault, SettingsFaults, setting

SPACE = " \t\n\f\r"
ADDRESS = rf"(?P<address>https?://[^{SPACE}\"'<>]*)"


class LinkScan(Extractor):
    name = "link-scan"
    summary = "Finds URIs in HTML without parsing it."
    media_types = ["text/html"]

    @dataclass
    class Settings:
        attributes: list[str] = setting(
            ["href", "src"], "Attributes whose values are URIs.", overridable=True
        )

    def __init__(self, settings: Settings):
        faults = [
            SettingsFault(f"/attributes/{index}", "not a name of an attribute")
            for index, name in enumerate(settings.attributes)
            if not re.fullmatch("[a-z0-9-]+", name)
        ]
        if faults:
            raise SettingsFaults.of(faults)
        # Matches an attribute with its value, or a URI in the text.
        names = "|".join(settings.attributes) or "(?!)"
        value = rf"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?!["'])(?P<bare>[^{SPACE}>]*)|["'])"""
        attribute = rf"(?<=[{SPACE}])(?P<name>(?ia:{names}))={value}"
        self.pattern = re.compile(f"{attribute}|{ADDRESS}")

    def extract(self, document: Document) -> Iterator[Link]:
        for found in self.pattern.finditer(document.text()):
            address = found["address"]
            if address is not None:
                uri = address.rstrip(".,;:!?)")
                if not uri.endswith("//"):
                    yield Link(uri, "speculative", "text")
                continue
            value = found["double"] or found["single"] or found["bare"] or ""
            uri = value.strip(SPACE).replace("&amp;", "&")
            if uri:
                name = found["name"].lower()
                yield Link(uri, "link" if name == "href" else "embed", f"@{name}")


plugins = [LinkScan]
