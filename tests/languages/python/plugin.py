"""Takes the first line of a document for a link, and hands the rest on as a fragment."""

from opilio_plugin import Document, Extraction, Extractor, Fragment, Link


class Relay(Extractor):
    name = "relay-python"
    summary = "Reads a line and hands on the rest."
    media_types = ["application/x-relay-python"]

    def extract(self, document: Document) -> Extraction:
        uri, more, rest = document.text().partition("\n")
        fragments = [Fragment("application/x-relay-c", rest, "rest")] if more else []
        return Extraction(links=[Link(uri, "link", "relay/python")], fragments=fragments)


plugins = [Relay]
