"""Common parts of the extraction judges in Python. They read a list of files and write one line of JSON for each."""

import json
import re
import sys
from urllib.parse import urlsplit

ADDRESS = re.compile(r"https?://[^\s<>\"'{}|\\^`]+", re.IGNORECASE)


def judge_all(judge):
    """Calls `judge(bytes, file)`, which returns (expected, allowed), for each line `FILE\tROOT` of the input."""
    for entry in sys.stdin:
        file = entry.rstrip("\n").split("\t")[0]
        with open(file, "rb") as stream:
            data = stream.read()
        try:
            expected, allowed = judge(data, file)
            answer = {"expected": sorted(set(expected)), "allowed": sorted(set(allowed))}
        except Exception as fault:  # Any exception of a parser means that the file is invalid.
            answer = {"expected": [], "fault": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(answer))


def line(value, hop=""):
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"link\t{hop}\t\t{value}"


def trim(value):
    return value.strip("".join(map(chr, range(0x21))))


def fetchable(value):
    """The reference without surrounding spaces, or None if a crawler cannot fetch it."""
    value = trim(value)
    if not value or value.startswith("#"):
        return None
    # `.uno:Undo` is a command of LibreOffice, not a relative path.
    scheme = re.match(r"(\.?[A-Za-z][A-Za-z0-9+.-]*):", value)
    if scheme and scheme[1].lower() not in ("http", "https", "ftp"):
        return None
    return value


def is_address(value):
    """Whether the value is an absolute http or https URL with a domain name, and nothing else."""
    value = trim(value)
    if not ADDRESS.fullmatch(value):
        return False
    try:
        host = urlsplit(value).hostname or ""
    except ValueError:
        return False
    return bool(re.search(r"\.[a-z]{2,}$", host, re.IGNORECASE))


def addresses_in(text):
    """URLs in a text, each with and without the punctuation behind it."""
    for match in ADDRESS.finditer(text):
        address = match[0]
        yield address
        while address and address[-1] in ".,;:!?)]*_'\"":
            address = address[:-1]
            yield address
