"""Checks archives with independent readers: warcio and, with --jwarc, jwarc.

usage: judge_warcs.py DIRECTORY [--expected FILE] [--jwarc JAR] [--like DIRECTORY] [--schemes https,ftp,...]

Every record is read. Every digest is computed twice: by warcio, and here without transfer codings. Every revisit record must refer
to a record with the same payload.

- --expected: file with one URL per line; each must be captured exactly once
- --like: archives of the same web; URLs that are in both must have the same bytes
- --schemes: each must have captures

Three errors of the readers are known, and ignored for the records to which they apply:

- warcio computes payload digests over bodies with their chunked coding (warcio#74)
- jwarc requires a body of Content-Length bytes even in a record with WARC-Truncated
- jwarc reads FTP and WHOIS records of ARC files as HTTP

Prints a line for each error, then a summary, and exits with 1 if there was an error.
"""

import argparse
import base64
import collections
import glob
import hashlib
import os
import re
import subprocess
import sys
from urllib.parse import quote, unquote, urlsplit

from warcio.archiveiterator import ArchiveIterator

REQUIRED = {"WARC-Record-ID", "WARC-Date", "WARC-Type", "Content-Length"}
ENDINGS = (".warc.gz", ".warc", ".arc.gz", ".arc")
# Messages of warcio about valid records, and about records that it cannot check.
IN_ORDER = {"digest pass", "digest present but not checked (revisit)", "no digest to check"}


def normalised(url):
    parts = urlsplit(url)
    return parts._replace(path=quote(unquote(parts.path), safe="/!$&'()*+,;=:@~-._")).geturl()


def digest(claimed, data):
    """The digest of `data` in the notation of `claimed`: the same algorithm, base32 or base16."""
    algorithm, _, value = claimed.partition(":")
    made = hashlib.new(algorithm.replace("-", ""), data)
    if len(value) == made.digest_size * 2:
        return f"{algorithm}:{made.hexdigest()}"
    return f"{algorithm}:{base64.b32encode(made.digest()).decode().rstrip('=')}"


class Archive:
    """The records of a directory of archives, and the errors in them."""

    def __init__(self, directory):
        self.files = sorted(file for file in glob.glob(os.path.join(directory, "*")) if file.endswith(ENDINGS))
        self.faults, self.kinds, self.captured = [], collections.Counter(), collections.Counter()
        self.schemes, self.ids, self.digests = collections.Counter(), set(), 0
        # By file: ids of records whose body has a transfer coding, and offsets of truncated records.
        self.coded, self.truncated = collections.defaultdict(set), collections.defaultdict(set)
        # By file: offsets of ARC records that are not HTTP.
        self.not_http = collections.defaultdict(set)
        # Payload digests by (URI, date); references of revisit records: (place, URI, date, digest); payload hashes by URI.
        self.stored, self.references, self.payloads = {}, [], {}
        # Captures over HTTPS, and ids of captures whose metadata record has the result of the certificate's check.
        self.over_https, self.certificates = [], set()
        if not self.files:
            self.faults.append(f"no archive in {directory}")
        for file in self.files:
            self.read(file)
        for where, uri, date, claimed in self.references:
            found = self.stored.get((uri, date))
            if found is None:
                self.faults.append(f"{where}: refers to a missing record: {uri} of {date}")
            elif claimed and claimed != found:
                self.faults.append(f"{where}: has payload {claimed}, but refers to one with {found}")
        for where, record_id in self.over_https:
            if record_id not in self.certificates:
                self.faults.append(f"{where}: no metadata record with the result of the certificate's check")

    def read(self, file):
        is_arc = ".arc" in os.path.basename(file)
        with open(file, "rb") as stream:
            records = ArchiveIterator(stream, arc2warc=True)
            for record in records:
                # `get_record_offset` reads the rest of the record, so it is called after the block is read.
                block = record.raw_stream.read()
                self.check_record(file, records.get_record_offset(), record, block, is_arc)

    def check_record(self, file, offset, record, payload, is_arc):
        header = record.rec_headers.get_header
        where = f"{os.path.basename(file)}+{offset} {header('WARC-Record-ID')}"
        uri, kind, name = header("WARC-Target-URI"), record.rec_type, os.path.basename(file)
        self.kinds[kind] += 1
        if not is_arc:
            for field in sorted(REQUIRED - {name for name, _ in record.rec_headers.headers}):
                self.faults.append(f"{where}: no {field}")
            if header("WARC-Record-ID") in self.ids:
                self.faults.append(f"{where}: record id used twice")
            self.ids.add(header("WARC-Record-ID"))
        if header("WARC-Truncated"):
            self.truncated[name].add(offset)
        if is_arc and uri and not uri.startswith("http"):
            self.not_http[name].add(offset)
        if kind == "metadata" and b"tls-certificate:" in payload:
            self.certificates.add(header("WARC-Concurrent-To"))
        if kind == "revisit" and header("WARC-Refers-To-Target-URI"):
            to = header("WARC-Refers-To-Target-URI"), header("WARC-Refers-To-Date")
            self.references.append((where, *to, header("WARC-Payload-Digest")))
        if kind not in {"response", "resource"}:
            return
        scheme = uri.split(":")[0]
        self.schemes[scheme] += 1
        protocols = {value for name, value in record.rec_headers.headers if name == "WARC-Protocol"}
        if scheme == "https" and not is_arc:
            self.over_https.append((where, header("WARC-Record-ID")))
            if not header("WARC-Cipher-Suite") or not any(value.startswith("tls/") for value in protocols):
                self.faults.append(f"{where}: no cipher suite, or no TLS among {protocols}")
        if scheme == "ftp" and not is_arc and scheme not in protocols:
            self.faults.append(f"{where}: {scheme} is not among the protocols {protocols}")
        # content_stream() would decode Content-Encoding, too, but the payload digest is over the encoded bytes.
        coding = record.http_headers and record.http_headers.get_header("Transfer-Encoding")
        if coding:
            self.coded[name].add(header("WARC-Record-ID"))
            payload = dechunk(payload)
        if kind == "response":
            self.captured[normalised(uri)] += 1
        for field in ["WARC-Payload-Digest", "WARC-Payload-Digest-SHA256"]:
            claimed = header(field)
            if claimed:
                self.digests += 1
                if claimed != digest(claimed, payload):
                    self.faults.append(f"{where}: {field} {claimed} but {digest(claimed, payload)} for {uri}")
        if kind == "response" and not is_arc and not header("WARC-Payload-Digest"):
            self.faults.append(f"{where}: no payload digest")
        self.stored[uri, header("WARC-Date")] = header("WARC-Payload-Digest")
        if not header("WARC-Truncated") and scheme not in {"dns", "metadata"}:
            self.payloads.setdefault(normalised(uri), set()).add(hashlib.sha1(payload).hexdigest())


def dechunk(data):
    out, rest = b"", data
    while True:
        size, _, rest = rest.partition(b"\r\n")
        size = int(size.split(b";")[0], 16)
        if size == 0:
            return out
        out, rest = out + rest[:size], rest[size + 2 :]


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace")


def warcio_check(archive, file):
    """Runs `warcio check`. Returns its errors without the known false ones, and the number of those."""
    name, faults, excused, passed = os.path.basename(file), [], 0, 0
    ended = run(sys.executable, "-m", "warcio.cli", "check", "-v", file)
    record_id = None
    for line in ended.stdout.splitlines():
        of_record = re.fullmatch(r"  offset \d+ WARC-Record-ID (\S+) \S+", line)
        message = line.strip()
        if of_record:
            record_id = of_record[1]
        elif line.startswith("    payload digest failed") and record_id in archive.coded[name]:
            excused += 1
        elif message in IN_ORDER:
            passed += message == "digest pass"
        elif line != file:
            faults.append(f"warcio check {name} {record_id}: {message}")
    if ended.returncode != (1 if excused or faults else 0):
        faults.append(f"warcio check {name} has exit status {ended.returncode}")
    if not passed and ".arc" not in name:
        faults.append(f"warcio check {name}: no digest was verified")
    return faults, excused


def jwarc_check(archive, jwarc, file):
    """Runs `jwarc validate`. Returns its errors without the known false ones, and the number of those."""
    name, faults, excused, messages = os.path.basename(file), [], 0, []
    ended = run("java", "-jar", jwarc, "validate", file)
    for line in ended.stdout.splitlines():
        of_record = re.search(r"  offset (\d+) \(length \d+\) .* failed$", line)
        if not of_record:
            messages.append(line)
            continue
        only, offset = messages[0] if len(messages) == 1 else "", int(of_record[1])
        is_length = "ERROR: invalid HTTP header Content-Length" in only
        is_not_http = "ParsingException: invalid HTTP message at byte position 0" in only
        if (is_length and offset in archive.truncated[name]) or (is_not_http and offset in archive.not_http[name]):
            excused += 1
        else:
            faults.append(f"jwarc validate {name}: {' / '.join([*messages, line])}")
        messages = []
    rest = [line for line in messages if line != f"Failed to validate {file}"]
    faults += [f"jwarc validate {name}: {line}" for line in rest]
    if ended.returncode != (1 if excused or faults else 0):
        faults.append(f"jwarc validate {name} has exit status {ended.returncode}")
    return faults, excused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--expected")
    parser.add_argument("--jwarc")
    parser.add_argument("--like")
    parser.add_argument("--schemes", default="")
    arguments = parser.parse_args()
    archive = Archive(arguments.directory)
    faults, known = archive.faults, []
    for file in archive.files:
        found, excused = warcio_check(archive, file)
        faults += found
        known.append(f"{excused} by warcio about bodies with a transfer coding")
        if arguments.jwarc:
            found, excused = jwarc_check(archive, arguments.jwarc, file)
            faults += found
            known.append(f"{excused} by jwarc about truncated bodies or ARC records that are not HTTP")
    if arguments.expected:
        with open(arguments.expected, encoding="utf-8") as stream:
            for url in sorted({normalised(line.strip()) for line in stream if line.strip()}):
                if archive.captured[url] != 1:
                    faults.append(f"{url}: captured {archive.captured[url]} times instead of once")
    if arguments.like:
        others = Archive(arguments.like).payloads
        both = [uri for uri in archive.payloads if uri in others]
        faults += [f"{uri}: bytes differ from those in {arguments.like}" for uri in both if archive.payloads[uri] - others[uri]]
        if len(both) < 10:
            faults.append(f"only {len(both)} URIs are in both archives, this one and {arguments.like}; at least 10 are expected")
    for scheme in filter(None, arguments.schemes.split(",")):
        if not archive.schemes[scheme]:
            faults.append(f"no capture with the scheme {scheme}")
    for fault in faults[:50]:
        print(fault)
    print(
        f"{len(archive.files)} files, {dict(sorted(archive.kinds.items()))}, {archive.digests} payload digests computed, "
        f"{len(archive.references)} revisits resolved, known false reports: {', '.join(known)}; {len(faults)} errors"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
