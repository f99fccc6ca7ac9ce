"""Makes URIs for tests of CDX keys. The random generator has a fixed seed, so the URIs are always the same.

usage: fuzzed_uris.py WARC [COUNT]    an archive with a small record for each
       fuzzed_uris.py - [COUNT]       lines of URI, tab and the key that cdxj-indexer writes (host/uri/tests/cases/cdx_keys.tsv)

The first URIs are written by hand: each tests a rule that was once implemented wrongly. The others are random: nine of ten as
crawls write URIs, one of ten as other tools or people may write them.
"""

import io
import random
import sys

from cdxj_indexer.main import CDXJIndexer
from warcio.warcwriter import WARCWriter

ID = "0123456789abcdef0123456789ABCDEF"
ASP = "ABCDEFGHIJKLMNOPQRSTUVWX"
CHOSEN = [
    # Addresses.
    "http://127.0.0.1/", "http://192.168.10.200:8080/a", "https://10.0.0.1:443/a?b", "http://[::1]/", "http://[2001:db8::1]:8080/a",
    "http://[::ffff:c000:201]/", "http://3279880203/blah", "http://0300.0250.1/", "http://192.168.1/", "http://0x7f.1/",
    "http://1.2.3.4.5/", "http://256.1.1.1/", "http://01.08.1.1/", "http://017700000001/", "http://99999999999999999999/",
    # Hosts.
    "http://www.com/", "http://www.example.org/", "http://www2.example.org/", "http://www.www.example.org/",
    "http://wwwx.example.org/", "http://WWW.Example.ORG/", "http://example.org./", "http://example..org/", "http://www/",
    "http://b\u00fccher.example/", "http://stra\u00dfe.example/", "http://xn--bcher-kva.example/", "http://ex%41mple.org/",
    "http://under_score.example.org/", "http://example.org%20/",
    # Authorities.
    "http://u:p@example.org/", "http://u@v@example.org/", "http://example.org:80/", "https://example.org:80/",
    "https://example.org:443/", "http://example.org:443/", "ftp://example.org/a", "ftp://example.org:21/a", "http://example.org:/",
    "http://example.org:0080/", "http://example.org:99999/", "http://example.org:a/",
    # Paths.
    "http://example.org", "http://example.org/a/", "http://example.org/a//b", "http://example.org//", "http://example.org/a/./b/../c",
    "http://example.org/../a", "http://example.org/a/..", "http://example.org/a/.", "http://example.org/%2e%2e/a",
    "http://example.org/a%2Fb", "http://example.org/a%3Fb", "http://example.org/a%23b", "http://example.org/A%C3%84%25",
    "http://example.org/%25%32%35", "http://example.org/%zz%", "http://example.org/a^b|c{d}", "http://example.org/caf\u00e9",
    f"http://example.org/a;jsessionid={ID}", f"http://example.org/a;jsessionid={ID}?b=c", "http://example.org/a;b=c",
    f"http://example.org/({ASP})/page.aspx", f"http://example.org/(S({ASP}))/page.aspx?a", f"http://example.org/a/(A({ASP})S({ASP}))/b.aspx",
    f"http://example.org/({ASP})/page.html", f"http://example.org/({ASP})/({ASP})/page.aspx",
    # Queries.
    "http://example.org/?", "http://example.org/a?", "http://example.org/a?&", "http://example.org/a?b&", "http://example.org/a?&b",
    "http://example.org/a?b&&c", "http://example.org/a?c=1&b=2&a", "http://example.org/a?a=2&a=1&a=&a", "http://example.org/a?B=C&a=D",
    "http://example.org/a?b=%26c", "http://example.org/a?b=c%20d+e", "http://example.org/a?b?c", "http://example.org/?a/../b//c/",
    "http://example.org/a?\u00e4=\u00f6", "http://example.org/a?=", "http://example.org/a?=b&=a",
    f"http://example.org/a?jsessionid={ID}", f"http://example.org/a?jsessionid={ID}&b=c", f"http://example.org/a?b=c&jsessionid={ID}",
    f"http://example.org/a?PHPSESSID={ID}&b", "http://example.org/a?PHPSESSID=0123456789abcdefghijklemop",
    f"http://example.org/a?sid={ID}", f"http://example.org/a?b&sid={ID}&c", f"http://example.org/a?xsid={ID}&c",
    f"http://example.org/a?sid={ID}&sid={ID}", f"http://example.org/a?sid={ID}0", f"http://example.org/a?phpsessid={ID}&phpsessid={ID}",
    f"http://example.org/a?ASPSESSIONIDABCDEFGH={ASP}&b", f"http://example.org/a?aspsessionidabcdefg={ASP}",
    "http://example.org/a?CFID=1&CFTOKEN=2", "http://example.org/a?CFID=1&CFTOKEN=2&b=c", "http://example.org/a?CFTOKEN=2&CFID=1",
    "http://example.org/a?CFID=1&b=c&CFTOKEN=2", "http://example.org/a?CFID=1", "http://example.org/a?cfid=cfid=1&cftoken=2",
    # Other schemes, and texts without a scheme.
    "dns:example.org", "dns:www.Example.org", "whois:example.org", "whois://whois.example.org/a.b", "mailto:A@example.org",
    "urn:uuid:ABCD", "urn:a?b", "warcinfo:a.warc.gz", "filedesc:A.arc.gz", "metadata://gnu.org/software/wget/warc/MANIFEST.txt",
    "example.org/a", "example.org:8080/a", "www.example.org", "HTTP://Example.org:80/A", "HTTPS://Example.org:443/A",
    "http://https://example.org/", "https://http://example.org/a", "http:example.org/a", "http:////example.org/a", "http://",
    "http:///", "http:?a", "ftp:///a", "screenshot:http://example.org/", "urn:pageinfo:http://example.org/", " http://example.org/ ",
    "http://example.org/a#b", "http://example.org#b?c",
]
HOSTS = [
    "example.org", "www.example.org", "www12.example.co.uk", "a.b.c.example.net", "www.com", "xn--bcher-kva.example", "127.0.0.1",
    "8.8.8.8", "[::1]", "[2001:db8::8:800:200c:417a]", "localhost", "web.archive.org", "w.example.org", "wwww.example.org", "a_b.example.org",
]
ODD_HOSTS = ["EXAMPLE.org", "example.org.", ".example.org", "example..org", "1.2.3", "0x10.1", "08.1.1.1", "4294967297", "%65xample.org", "caf\u00e9.example", "", "[::1"]
PIECES = [
    "a", "B", "index.html", "page.aspx", "%C3%A4", "%20", "%2F", "%25", "%3f", "%26", "%3D", "..", ".", "", "~x", "x;y=1", f";jsessionid={ID}",
    f"({ASP})", f"(S({ASP}))", "a+b", "a,b", "a:b", "@", "!$'()*", "%E2%82%AC", "0", "%7Eu",
]
NAMES = ["a", "b", "B", "id", "q", "sid", "xsid", "SID", "jsessionid", "JSESSIONID", "PHPSESSID", "CFID", "cftoken", "ASPSESSIONIDABCDEFGH", "", "utm_source", "a[]"]
VALUES = ["", "1", "2", "x y".replace(" ", "%20"), "%26", ID, ID[:26], ASP, "http://example.org/", "/../", "%C3%A9", "a=b", "?", "%2525"]


def uris(count):
    chance = random.Random(23)
    made = list(CHOSEN)
    known = set(made)
    while len(made) < count:
        uri = fuzzed(chance)
        # A header field of a record cannot begin or end with a space.
        if uri not in known and uri.strip() == uri and uri:
            known.add(uri)
            made.append(uri)
    return made[:count]


def fuzzed(chance):
    odd = chance.random() < 0.1
    scheme = chance.choice(["http", "http", "https", "https", "ftp"] + (["HTTP", "dns", "whois", "x-y"] if odd else []))
    host = chance.choice(HOSTS + (ODD_HOSTS if odd else []))
    user = chance.choice(["", "", "", "", "u@", "u:p@"])
    port = chance.choice(["", "", "", ":8080", ":80", ":443", ":21"] + ([":", ":0", ":080"] if odd else []))
    path = "".join("/" + chance.choice(PIECES) for _ in range(chance.randint(1, 4)))
    query = ""
    if chance.random() < 0.6:
        pairs = [chance.choice(NAMES) + chance.choice(["=" + chance.choice(VALUES)] * 4 + [""]) for _ in range(chance.randint(0, 4))]
        query = "?" + "&".join(pairs)
    if odd and chance.random() < 0.3:
        path = path.replace("/", chance.choice(["//", "/./", ""]), 1)
    return f"{scheme}://{user}{host}{port}{path}{query}"


def main():
    target, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    if target == "-":
        indexer = CDXJIndexer(None, [])
        for uri in uris(count):
            print(f"{uri}\t{indexer.get_url_key(uri)}")
        return
    with open(target, "wb") as out:
        writer = WARCWriter(out, gzip=True)
        for uri in uris(count):
            writer.write_record(writer.create_warc_record(uri, "resource", payload=io.BytesIO(b"a"), warc_content_type="text/plain"))


if __name__ == "__main__":
    main()
