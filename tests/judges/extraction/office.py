"""OpenDocument and OOXML, their parts parsed by lxml.

OpenDocument: XLinks that are addresses, or lead out of the package. OOXML: external targets of relationships.
"""

import io
import zipfile

from lxml import etree

from walk import fetchable, judge_all, line

XLINK_HREF = "{http://www.w3.org/1999/xlink}href"


def judge(data, _file):
    expected = []
    with zipfile.ZipFile(io.BytesIO(data)) as package:
        for name in package.namelist():
            if not name.endswith((".xml", ".rels")):
                continue
            content = package.read(name)
            if not content.strip():
                continue
            root = etree.fromstring(content, etree.XMLParser(recover=True, resolve_entities=False, huge_tree=True))
            if root is None:
                continue
            for element in root.iter(etree.Element):
                if name.endswith(".rels"):
                    target = element.get("Target") if element.get("TargetMode") == "External" else None
                else:
                    target = element.get(XLINK_HREF)
                target = fetchable(target or "")
                if target and ("://" in target or target.startswith("../")):
                    expected.append(line(target))
    return expected, []


judge_all(judge)
