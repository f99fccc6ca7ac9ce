"""Judges WARC files with warcio: structure, digests, and whether what must be there is there once.

usage: judge_warcs.py EXPECTED DIRECTORY

EXPECTED holds one URL a line. Prints a line for each fault and ends with a summary; exits 1 where there was a fault.
"""

import base64
import collections
import glob
import hashlib
import os
import sys
from urllib.parse import quote, unquote, urlsplit

from warcio.archiveiterator import ArchiveIterator

REQUIRED = {"WARC-Record-ID", "WARC-Date", "WARC-Type", "Content-Length"}


def normal(url):
    parts = urlsplit(url)
    return parts._replace(path=quote(unquote(parts.path), safe="/!$&'()*+,;=:@~-._")).geturl()


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        expected = {normal(line.strip()) for line in stream if line.strip()}
    faults, kinds, captured, ids = [], collections.Counter(), collections.Counter(), set()
    digests = 0
    files = sorted(glob.glob(os.path.join(sys.argv[2], "*.warc.gz")))
    if not files:
        faults.append("there is no WARC file")
    for name in files:
        with open(name, "rb") as stream:
            for record in ArchiveIterator(stream):
                headers = record.rec_headers
                where = f"{os.path.basename(name)} {headers.get_header('WARC-Record-ID')}"
                kinds[record.rec_type] += 1
                for field in REQUIRED - {header for header, _ in headers.headers}:
                    faults.append(f"{where}: no {field}")
                if headers.get_header("WARC-Record-ID") in ids:
                    faults.append(f"{where}: record id used twice")
                ids.add(headers.get_header("WARC-Record-ID"))
                if record.rec_type == "response":
                    uri = headers.get_header("WARC-Target-URI")
                    captured[normal(uri)] += 1
                    # content_stream() would undo Content-Encoding too; the payload digest is over the coded bytes.
                    payload = record.raw_stream.read()
                    if "chunked" in (record.http_headers.get_header("Transfer-Encoding") or "").lower():
                        payload = dechunk(payload)
                    claimed = headers.get_header("WARC-Payload-Digest")
                    digests += 1
                    if claimed != sha1(payload):
                        faults.append(f"{where}: payload digest {claimed} but {sha1(payload)} for {uri}")
    for url in sorted(expected):
        if captured[url] != 1:
            faults.append(f"{url}: captured {captured[url]} times instead of once")
    for fault in faults[:50]:
        print(fault)
    print(
        f"{len(files)} files, {dict(sorted(kinds.items()))}, {digests} payload digests computed, "
        f"{len(expected)} expected URLs, {len(set(captured) - expected)} others, {len(faults)} faults"
    )
    sys.exit(1 if faults else 0)


def dechunk(data):
    out, rest = b"", data
    while True:
        size, _, rest = rest.partition(b"\r\n")
        size = int(size.split(b";")[0], 16)
        if size == 0:
            return out
        out, rest = out + rest[:size], rest[size + 2 :]


if __name__ == "__main__":
    main()
