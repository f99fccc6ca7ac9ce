"""What the judges that run on Python share: the list of files in, one line of JSON for each out."""

import json
import re
import sys
from urllib.parse import urlsplit

ADDRESS = re.compile(r"https?://[^\s<>\"'{}|\\^`]+", re.IGNORECASE)


def judge_all(judge):
    """Calls `judge(bytes, file)` for each line `FILE\tROOT` of the input; it returns (expected, allowed)."""
    for entry in sys.stdin:
        file = entry.rstrip("\n").split("\t")[0]
        with open(file, "rb") as stream:
            data = stream.read()
        try:
            expected, allowed = judge(data, file)
            answer = {"expected": sorted(set(expected)), "allowed": sorted(set(allowed))}
        except Exception as fault:  # Whatever a parser raises is the file's fault.
            answer = {"expected": [], "fault": f"{type(fault).__name__}: {fault}"}
        print(json.dumps(answer))


def line(value, hop=""):
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return f"link\t{hop}\t\t{value}"


def trim(value):
    return value.strip("".join(map(chr, range(0x21))))


def fetchable(value):
    """The reference without what surrounds it, if a crawler could fetch it."""
    value = trim(value)
    if not value or value.startswith("#"):
        return None
    # `.uno:Undo` is a command of LibreOffice, and no path either.
    scheme = re.match(r"(\.?[A-Za-z][A-Za-z0-9+.-]*):", value)
    if scheme and scheme[1].lower() not in ("http", "https", "ftp"):
        return None
    return value


def is_address(value):
    """An absolute address of the internet, and nothing else."""
    value = trim(value)
    if not ADDRESS.fullmatch(value):
        return False
    try:
        host = urlsplit(value).hostname or ""
    except ValueError:
        return False
    return bool(re.search(r"\.[a-z]{2,}$", host, re.IGNORECASE))


def addresses_in(text):
    """Addresses in running text, each with and without the marks of the sentence around it."""
    for match in ADDRESS.finditer(text):
        address = match[0]
        yield address
        while address and address[-1] in ".,;:!?)]*_'\"":
            address = address[:-1]
            yield address
