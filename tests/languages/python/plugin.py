"""Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`."""

from opilio_plugin import Document, Extraction, Extractor, Fragment, Link


class Relay(Extractor):
    name = "relay-python"
    summary = "Reports the first line as a link and the rest as a fragment."
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
