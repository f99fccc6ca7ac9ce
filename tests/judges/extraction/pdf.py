"""PDF, parsed by pypdf.

Expected: `/URI` in actions of annotations on pages. Allowed: `/URI` of any object.
"""

import io
import logging

from pypdf import PdfReader
from pypdf.generic import ArrayObject, DictionaryObject, IndirectObject

from walk import fetchable, judge_all, line

logging.disable(logging.CRITICAL)


def uris(value, depth=0):
    if depth > 20:
        return
    if isinstance(value, DictionaryObject):
        uri = value.get("/URI")
        if uri is not None and not isinstance(uri, (DictionaryObject, IndirectObject)):
            yield text_of(uri)
        for each in value.values():
            if not isinstance(each, IndirectObject):
                yield from uris(each, depth + 1)
    elif isinstance(value, ArrayObject):
        for each in value:
            if not isinstance(each, IndirectObject):
                yield from uris(each, depth + 1)


def text_of(value):
    return value.decode("utf-8", errors="replace") if isinstance(value, bytes) else str(value)


def annotations(reader):
    for page in reader.pages:
        listed = page.get("/Annots")
        for annotation in (listed.get_object() if listed is not None else None) or []:
            annotation = annotation.get_object()
            if isinstance(annotation, DictionaryObject) and "/A" in annotation:
                yield from uris(annotation["/A"].get_object())


def objects(reader):
    numbers = {number for table in reader.xref.values() for number in table} | set(reader.xref_objStm)
    for number in numbers:
        try:
            yield from uris(reader.get_object(number))
        except Exception:  # A broken object that nothing needs.
            continue


def judge(data, _file):
    reader = PdfReader(io.BytesIO(data))
    expected = [line(uri) for uri in map(fetchable, annotations(reader)) if uri]
    allowed = [line(uri) for uri in map(fetchable, objects(reader)) if uri]
    return expected, allowed


judge_all(judge)
