"""Judges archives with other people's readers: warcio, and jwarc where it is given.

usage: judge_warcs.py DIRECTORY [--expected FILE] [--jwarc JAR] [--like DIRECTORY] [--schemes https,ftp,...]

Every record is read, every digest computed twice, by warcio and here (here with transfer codings removed), and every
revisit must refer to a record that has its payload. --expected has one URL a line, each to be captured once. --like has
archives of the same web: what both have captured must be the same bytes. --schemes must all be there.

Three faults of the readers are known, and excused where nothing else can be meant: warcio compares payload digests with
bodies whose chunking it has not removed (warcio#74); jwarc wants a body as long as its Content-Length even where
WARC-Truncated says that it was cut; of ARC it takes FTP and WHOIS for HTTP. Prints a line for each fault and ends with a summary; exits 1 where there was one.
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
# What warcio says of records in order, and of those that it cannot judge.
IN_ORDER = {"digest pass", "digest present but not checked (revisit)", "no digest to check"}


def normal(url):
    parts = urlsplit(url)
    return parts._replace(path=quote(unquote(parts.path), safe="/!$&'()*+,;=:@~-._")).geturl()


def digest(claimed, data):
    """The digest of data as `claimed` writes its own: its algorithm, base32 or base16."""
    algorithm, _, value = claimed.partition(":")
    made = hashlib.new(algorithm.replace("-", ""), data)
    if len(value) == made.digest_size * 2:
        return f"{algorithm}:{made.hexdigest()}"
    return f"{algorithm}:{base64.b32encode(made.digest()).decode().rstrip('=')}"


class Archive:
    """Everything that was read."""

    def __init__(self, directory):
        self.files = sorted(file for file in glob.glob(os.path.join(directory, "*")) if file.endswith(ENDINGS))
        self.faults, self.kinds, self.captured = [], collections.Counter(), collections.Counter()
        self.schemes, self.ids, self.digests = collections.Counter(), set(), 0
        # By file: ids of records whose body has a transfer coding, offsets of those that were cut.
        self.coded, self.cut = collections.defaultdict(set), collections.defaultdict(set)
        # By file: offsets of records of ARC that are no HTTP.
        self.other = collections.defaultdict(set)
        # (URI, date) of whole payloads; (where, URI, date, digest) of what revisits refer to.
        self.stored, self.referred, self.payloads = {}, [], {}
        # https captures, and ids of captures whose metadata says what became of the certificate.
        self.secure, self.certificates = [], set()
        if not self.files:
            self.faults.append(f"there is no archive in {directory}")
        for file in self.files:
            self.read(file)
        for where, uri, date, claimed in self.referred:
            found = self.stored.get((uri, date))
            if found is None:
                self.faults.append(f"{where}: refers to {uri} of {date}, which is not there")
            elif claimed and claimed != found:
                self.faults.append(f"{where}: has payload {claimed}, but refers to one with {found}")
        for where, record_id in self.secure:
            if record_id not in self.certificates:
                self.faults.append(f"{where}: no metadata says whether the certificate can be trusted")

    def read(self, file):
        is_arc = ".arc" in os.path.basename(file)
        with open(file, "rb") as stream:
            records = ArchiveIterator(stream, arc2warc=True)
            for record in records:
                # The offset is asked for afterwards: asking reads the record.
                block = record.raw_stream.read()
                self.take(file, records.get_record_offset(), record, block, is_arc)

    def take(self, file, offset, record, payload, is_arc):
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
            self.cut[name].add(offset)
        if is_arc and uri and not uri.startswith("http"):
            self.other[name].add(offset)
        if kind == "metadata" and b"tls-certificate:" in payload:
            self.certificates.add(header("WARC-Concurrent-To"))
        if kind == "revisit" and header("WARC-Refers-To-Target-URI"):
            to = header("WARC-Refers-To-Target-URI"), header("WARC-Refers-To-Date")
            self.referred.append((where, *to, header("WARC-Payload-Digest")))
        if kind not in {"response", "resource"}:
            return
        scheme = uri.split(":")[0]
        self.schemes[scheme] += 1
        protocols = {value for name, value in record.rec_headers.headers if name == "WARC-Protocol"}
        if scheme == "https" and not is_arc:
            self.secure.append((where, header("WARC-Record-ID")))
            if not header("WARC-Cipher-Suite") or not any(value.startswith("tls/") for value in protocols):
                self.faults.append(f"{where}: no cipher suite, or no TLS among {protocols}")
        if scheme == "ftp" and not is_arc and scheme not in protocols:
            self.faults.append(f"{where}: {scheme} is not among the protocols {protocols}")
        # content_stream() would undo Content-Encoding too; the payload digest is over the coded bytes.
        coding = record.http_headers and record.http_headers.get_header("Transfer-Encoding")
        if coding:
            self.coded[name].add(header("WARC-Record-ID"))
            payload = dechunk(payload)
        if kind == "response":
            self.captured[normal(uri)] += 1
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
            self.payloads.setdefault(normal(uri), set()).add(hashlib.sha1(payload).hexdigest())


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
    """What `warcio check` says, without what is known; how often that was."""
    name, faults, excused, passed = os.path.basename(file), [], 0, 0
    ended = run(sys.executable, "-m", "warcio.cli", "check", "-v", file)
    record_id = None
    for line in ended.stdout.splitlines():
        of_record = re.fullmatch(r"  offset \d+ WARC-Record-ID (\S+) \S+", line)
        said = line.strip()
        if of_record:
            record_id = of_record[1]
        elif line.startswith("    payload digest failed") and record_id in archive.coded[name]:
            excused += 1
        elif said in IN_ORDER:
            passed += said == "digest pass"
        elif line != file:
            faults.append(f"warcio check {name} {record_id}: {said}")
    if ended.returncode != (1 if excused or faults else 0):
        faults.append(f"warcio check {name} ends with {ended.returncode}")
    if not passed and ".arc" not in name:
        faults.append(f"warcio check {name}: no digest was verified")
    return faults, excused


def jwarc_check(archive, jwarc, file):
    """What `jwarc validate` says, without what is known; how often that was."""
    name, faults, excused, said = os.path.basename(file), [], 0, []
    ended = run("java", "-jar", jwarc, "validate", file)
    for line in ended.stdout.splitlines():
        of_record = re.search(r"  offset (\d+) \(length \d+\) .* failed$", line)
        if not of_record:
            said.append(line)
            continue
        only, offset = said[0] if len(said) == 1 else "", int(of_record[1])
        is_length = "ERROR: invalid HTTP header Content-Length" in only
        is_no_http = "ParsingException: invalid HTTP message at byte position 0" in only
        if (is_length and offset in archive.cut[name]) or (is_no_http and offset in archive.other[name]):
            excused += 1
        else:
            faults.append(f"jwarc validate {name}: {' / '.join([*said, line])}")
        said = []
    rest = [line for line in said if line != f"Failed to validate {file}"]
    faults += [f"jwarc validate {name}: {line}" for line in rest]
    if ended.returncode != (1 if excused or faults else 0):
        faults.append(f"jwarc validate {name} ends with {ended.returncode}")
    return faults, excused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--expected")
    parser.add_argument("--jwarc")
    parser.add_argument("--like")
    parser.add_argument("--schemes", default="")
    asked = parser.parse_args()
    archive = Archive(asked.directory)
    faults, known = archive.faults, []
    for file in archive.files:
        found, excused = warcio_check(archive, file)
        faults += found
        known.append(f"{excused} of warcio's on bodies with a transfer coding")
        if asked.jwarc:
            found, excused = jwarc_check(archive, asked.jwarc, file)
            faults += found
            known.append(f"{excused} of jwarc's on bodies that were cut, or on ARC that is no HTTP")
    if asked.expected:
        with open(asked.expected, encoding="utf-8") as stream:
            for url in sorted({normal(line.strip()) for line in stream if line.strip()}):
                if archive.captured[url] != 1:
                    faults.append(f"{url}: captured {archive.captured[url]} times instead of once")
    if asked.like:
        others = Archive(asked.like).payloads
        both = [uri for uri in archive.payloads if uri in others]
        faults += [f"{uri}: other bytes than in {asked.like}" for uri in both if archive.payloads[uri] - others[uri]]
        if len(both) < 10:
            faults.append(f"{len(both)} URIs are both here and in {asked.like}")
    for scheme in filter(None, asked.schemes.split(",")):
        if not archive.schemes[scheme]:
            faults.append(f"nothing was fetched by {scheme}")
    for fault in faults[:50]:
        print(fault)
    print(
        f"{len(archive.files)} files, {dict(sorted(archive.kinds.items()))}, {archive.digests} payload digests computed, "
        f"{len(archive.referred)} revisits resolved, known false reports: {', '.join(known)}; {len(faults)} faults"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
