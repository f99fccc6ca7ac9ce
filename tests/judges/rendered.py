"""Replays pages that a browser rendered in a crawl: pywb serves the archive, Chromium shows it without any other network, and
every page must look as it did in the crawl, and as its server showed it to a browser without Opilio. Pages without end must have ended
at their limits in the crawl.

usage: rendered.py WARCS INDEX WACZ ORIGIN CHROMIUM HOME

WARCS is a directory of archives with `urn:view:` records, INDEX what pywb reads of them, WACZ a package of the same, ORIGIN what
`xtask/src/judges/replay/rendered.rs` served (it is gone by now), CHROMIUM the browser of the crawl, HOME where collection and
screenshots go, and where `rendered_live.py` has put its own. Prints a line for each fault; exits 1 where there was one.
"""

import base64
import glob
import hashlib
import json
import os
import sys
import zipfile

from playwright.sync_api import sync_playwright
from warcio.archiveiterator import ArchiveIterator

from replay import PATIENCE_S, read_index, serve_from, start

# The window of the crawl, and switches that make pictures of pages alike.
WINDOW = {"width": 1280, "height": 800}
SWITCHES = ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--force-color-profile=srgb", "--hide-scrollbars"]

# In replay no name leads anywhere. Requests of workers pass the filter of a context, and not this.
OFFLINE = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]

# A pixel differs if a channel does by more than this (of 255); a page looks otherwise if more than this share of its pixels differ.
CHANNEL_MAX = 24
SHARE_MAX = 0.002

# Each page, and what holds once it is as it was.
PAGES = [
    ("/", "document.links.length === 14"),
    ("/app", "document.querySelectorAll('h2').length === 2 && document.querySelector('#old')?.textContent === 'By XMLHttpRequest.'"),
    # A link of the application. In the crawl, the page of its address has asked for the item.
    ("/app/item/2", "document.querySelector('#item')?.textContent === 'Item 2 in full.'"),
    (
        "/search",
        """[...document.querySelectorAll('li')].map((it) => it.textContent).join('|') === [
            'Found by POST: {"query":"apples","page":1}', 'Found by POST: {"query":"pears","page":2}',
            'Found by POST: query=plums&page=3', 'Found by PUT: {"query":"quinces"}'].join('|')""",
    ),
    ("/endless", "document.querySelector('#end') !== null"),
    ("/lazy", "document.querySelector('#near').complete && /green/.test(document.querySelector('#choice').currentSrc)"),
    ("/parts", "document.querySelector('iframe').contentDocument?.querySelector('#inside')?.textContent === 'Written in a frame.'"
     " && document.querySelector('#host').shadowRoot !== null"),
    ("/more", "document.querySelector('button') !== null"),
    ("/worker/", "document.querySelector('#words').textContent === 'Answered by a worker.'"),
    ("/fonts", "document.querySelector('#loaded').textContent === 'Loaded.'"),
    ("/video", "document.querySelector('#length').textContent === '2 s, 160 by 96'"),
    ("/windows", "document.querySelector('#said').textContent === 'Confirmed: false'"),
    ("/opened", "document.querySelector('#opened') !== null"),
    ("/downloads", "document.querySelector('iframe') !== null"),
    ("/away", "document.querySelector('#left') !== null"),
    ("/left", "document.querySelector('#left') !== null"),
    ("/busy", "document.querySelector('#polled').textContent === 'Polled.'"),
]

# What readers of the archive do, and what they then find: parts that a behaviour had loaded in the crawl.
DEEDS = {
    "/app": (
        "document.querySelector('#link-2')?.click()",
        "document.querySelector('#item')?.textContent === 'Item 2 in full.' && location.href.endsWith('/app/item/2')",
    ),
    "/endless": ("window.scrollTo(0, document.body.scrollHeight)", "document.querySelectorAll('.part').length === 4"),
    "/lazy": ("window.scrollTo(0, document.body.scrollHeight)", "document.querySelector('#far').naturalWidth === 300"),
    "/more": ("document.querySelector('button')?.click()", "document.querySelectorAll('.part').length === 3"),
    "/windows": ("document.querySelector('button')?.click()", "document.querySelector('button') === null"),
}

# Pages whose picture was taken after a behaviour had changed what is in sight: compared after the same deed.
CHANGED = {"/more", "/windows"}

# Pages that leave themselves in replay. The pictures of the crawl and of the live page show them before.
LEFT = {"/away"}

# Pages whose network does not come to rest, or whose frame has no document.
RESTLESS = {"/busy", "/downloads"}

# Pages with a worker of their own. pywb allows it for addresses with this modifier only.
WORKED = {"/worker/": "mp_"}

# Annotations of pages that reach a limit in the crawl: how each may begin. The greedy page reaches its limit before there is anything to
# keep or after that, depending on the machine.
LIMITED = {"/busy": ("rendered:",), "/greedy": ("notRendered:memory", "rendered:memory")}

# A file that a page downloads, as `xtask/src/judges/replay/rendered.rs` serves it.
FILE = ("/data.bin", bytes(range(256)) * 256)

# Share of pixels of two pictures that differ; 1 where their sizes do.
DIFFERENCE = """async ([first, second, most]) => {
    const pixels = async (data) => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + data;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height);
    };
    const [a, b] = [await pixels(first), await pixels(second)];
    if (a.width !== b.width || a.height !== b.height) return 1;
    let differ = 0;
    for (let at = 0; at < a.data.length; at += 4)
        if ([0, 1, 2].some((n) => Math.abs(a.data[at + n] - b.data[at + n]) > most)) differ += 1;
    return differ / (a.data.length / 4);
}"""


def main():
    warcs, index, wacz, origin, chromium, home = sys.argv[1:]
    served = serve_from(home, warcs, index)
    views = read_views(warcs)
    captured = read_index(index)
    faults = packed(wacz, origin) + limited(warcs, origin) + fetched(captured, origin)
    server, port = start(home)
    worst = 0.0
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES + OFFLINE)
            for path, holds in PAGES:
                view, stamp = views.get(origin + path), [it["timestamp"] for it in captured[origin + path]]
                if view is None or not stamp:
                    faults.append(f"{path}: no capture or no picture in the archive")
                    continue
                replayed = f"http://127.0.0.1:{port}/judged/{stamp[-1]}{WORKED.get(path, '')}/{origin}{path}"
                found, share = look(browser, port, replayed, path, holds, view, home)
                faults += found
                worst = max(worst, share)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES)} rendered pages of {served}, at most {worst:.2%} of their pixels differ, {len(faults)} faults")
    sys.exit(1 if faults else 0)


def look(browser, port, url, path, holds, view, home):
    """Faults of a replayed page, and the largest share of its pixels that differ from another picture of it."""
    context = browser.new_context(viewport=WINDOW, service_workers="allow" if path in WORKED else "block")
    # Nothing but the replay can be reached.
    context.route(lambda target: not target.startswith(f"http://127.0.0.1:{port}/"), lambda route: route.abort())
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    faults, worst = [], 0.0
    try:
        page.goto(url, wait_until="load")
        page.wait_for_function(holds)
        deed, then = DEEDS.get(path, (None, None))
        if path in CHANGED:
            do(page, deed, then)
        with open(picture_file(home, path, "crawl"), "wb") as file:
            file.write(view)
        with open(picture_file(home, path, "live"), "rb") as file:
            pictures = {"crawl": view, "live page": file.read()}
        if path in LEFT:
            shown = pictures.pop("crawl")
        else:
            if path not in RESTLESS:
                page.wait_for_load_state("networkidle")
            shown = page.screenshot(path=picture_file(home, path, "replay"))
        for source, picture in pictures.items():
            both = [base64.b64encode(it).decode() for it in (picture, shown)]
            share = page.evaluate(DIFFERENCE, [*both, CHANNEL_MAX])
            worst = max(worst, share)
            if share > SHARE_MAX:
                files = picture_file(home, path, "*")
                faults.append(f"{path}: {share:.2%} of the pixels differ from the {source}; compare {files}")
        if deed and path not in CHANGED:
            do(page, deed, then)
    except Exception as problem:
        faults.append(f"{path}: {str(problem).splitlines()[0]}")
    finally:
        context.close()
    return faults, worst


def picture_file(home, path, source):
    """The file of a picture of a page."""
    name = path.strip("/").replace("/", "-") or "home"
    return os.path.join(home, f"{name}-{source}.png")


def do(page, deed, then):
    """Does it again and again until the page is as it was in the crawl."""
    page.wait_for_function(f"() => {{ if ({then}) return true; {deed}; return false; }}", polling=200)


def read_views(warcs):
    """Pictures by URI of the page."""
    views = {}
    for name in sorted(glob.glob(os.path.join(warcs, "*.warc.gz"))):
        with open(name, "rb") as file:
            for record in ArchiveIterator(file):
                target = record.rec_headers.get_header("WARC-Target-URI") or ""
                if target.startswith("urn:view:"):
                    views[target.removeprefix("urn:view:")] = record.content_stream().read()
    return views


def limited(warcs, origin):
    """Faults of pages that had to reach a limit in the crawl."""
    annotations = {}
    with open(os.path.join(os.path.dirname(os.path.abspath(warcs)), "logs", "crawl.log"), encoding="utf-8") as lines:
        for fields in map(str.split, lines):
            annotations[fields[3]] = fields[11].split(",")
    faults = []
    for path, beginnings in LIMITED.items():
        found = annotations.get(origin + path, [])
        if not any(it.startswith(beginnings) for it in found):
            faults.append(f"{path}: annotations are {found} and not {' or '.join(beginnings)}")
    return faults


def fetched(captured, origin):
    """Faults of what only a browser asks for: a part of a video, and a file that was downloaded."""
    faults = []
    if not any(it.get("status") == "206" for it in captured[origin + "/clip.webm"]):
        faults.append("/clip.webm: no capture with status 206")
    path, content = FILE
    digest = base64.b32encode(hashlib.sha1(content).digest()).decode()
    if not any(it.get("digest", "").endswith(digest) for it in captured[origin + path]):
        faults.append(f"{path}: no whole capture")
    return faults


def packed(wacz, origin):
    """Faults of the list of pages in a package."""
    with zipfile.ZipFile(wacz) as package:
        # Seeds are in the first list, other pages in the second.
        lists = [package.read(f"pages/{name}.jsonl").decode().splitlines() for name in ("pages", "extraPages")]
    pages = {page["url"]: page for lines in lists for page in map(json.loads, lines[1:])}
    faults = []
    for path, _ in PAGES:
        page = pages.get(origin + path, {})
        # Its text is archived, too.
        if page.get("rendered") is not True or page.get("loadState") != 3:
            faults.append(f"{path}: in the list of pages of the package as {page}")
    return faults


if __name__ == "__main__":
    main()
