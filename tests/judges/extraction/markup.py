"""XML and SVG, parsed by lxml.

SVG: `href` with and without XLink on any element, and style sheets are expected; nothing else is allowed.
XML: the same, and attribute values and texts that are an absolute URL, are expected. Any attribute value, any text, any URL in a
text, and the system identifier of the document type are allowed. Namespace declarations are ignored: they are names.
"""

import re
import sys

from lxml import etree

from walk import addresses_in, fetchable, is_address, judge_all, line, trim

XLINK = "{http://www.w3.org/1999/xlink}"
NAMES = {"namespace", "targetNamespace"}


def parsed(data):
    text = data.decode("utf-8", errors="replace").removeprefix("\ufeff")
    # The text is decoded already, so its encoding declaration is removed.
    text = re.sub(r"^(\s*<\?xml[^>]*?)\s+encoding\s*=\s*(\"[^\"]*\"|'[^']*')", r"\1", text)
    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, huge_tree=True)
    root = etree.fromstring(text.encode("utf-8"), parser)
    if root is None:
        raise ValueError("nothing could be parsed")
    return root.getroottree()


def style_sheets(tree):
    for instruction in tree.xpath("//processing-instruction('xml-stylesheet')"):
        href = instruction.attrib.get("href")
        if href and fetchable(href):
            yield fetchable(href)


def svg(data, _file):
    tree = parsed(data)
    expected = [line(href, "E") for href in style_sheets(tree)]
    for element in tree.iter(etree.Element):
        for name in ("href", XLINK + "href"):
            reference = fetchable(element.get(name) or "")
            if reference:
                hop = "L" if etree.QName(element).localname == "a" else "E"
                expected.append(line(reference, hop))
    return expected, []


def xml(data, _file):
    tree = parsed(data)
    expected = [line(href) for href in style_sheets(tree)]
    allowed = []
    if tree.docinfo.system_url:
        allowed.append(line(tree.docinfo.system_url))
    for element in tree.iter(etree.Element):
        for name, value in element.attrib.items():
            name = etree.QName(name)
            if name.namespace and "XML/1998" in name.namespace:
                continue
            reference = fetchable(value)
            is_reference = name.localname == "href" or (is_address(value) and name.localname not in NAMES)
            if reference and is_reference:
                expected.append(line(reference))
            allowed.append(line(trim(value)))
            allowed += [line(part) for part in value.split()]
            allowed += map(line, addresses_in(value))
    for text in tree.xpath("//text()"):
        allowed.append(line(trim(text)))
        allowed += map(line, addresses_in(text))
        if is_address(text):
            expected.append(line(trim(text)))
    return expected, allowed


judge_all(svg if sys.argv[1] == "svg" else xml)
