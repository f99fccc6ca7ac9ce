"""Takes the first line of a document for a link, and hands the rest on as a fragment; or goes wrong, as it is told."""

from opilio_plugin import Document, Extraction, Extractor, Fragment, Link


class Relay(Extractor):
    name = "relay-python"
    summary = "Reads a line and hands on the rest."
    media_types = ["application/x-relay-python"]

    def extract(self, document: Document) -> Extraction:
        if document.text() == "fail":
            raise ValueError("relay-python was told to fail")
        if document.text() == "wrong":
            return Extraction(links=[Link(7, "link", "wrong")])
        uri, more, rest = document.text().partition("\n")
        fragments = [Fragment("application/x-relay-rust", rest, "rest")] if more else []
        return Extraction(links=[Link(uri, "link", "relay/python")], fragments=fragments)


plugins = [Relay]
