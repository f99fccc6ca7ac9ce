"""Replays pages that a browser rendered in a crawl. pywb serves the archive, and Chromium shows it without any other network. Every
page must look as in the crawl, and as the live page looked in a browser without Opilio. Pages that never finish must have reached
their limits in the crawl.

usage: rendered.py WARCS INDEX WACZ ORIGIN CHROMIUM HOME

- WARCS: directory of archives with `urn:view:` records
- INDEX: index for pywb
- WACZ: package of the same archives
- ORIGIN: origin that `xtask/src/judges/replay/rendered.rs` served; it is no longer served
- CHROMIUM: browser of the crawl
- HOME: directory for the collection and screenshots, with those of `rendered_live.py`

Prints a line for each error and exits with 1 if there was one.
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

from replay import PATIENCE_S, read_index, make_collection, start

# The window of the crawl, and switches with which pictures of the same page are equal.
WINDOW = {"width": 1280, "height": 800}
SWITCHES = ["--no-sandbox", "--disable-gpu", "--font-render-hinting=none", "--force-color-profile=srgb", "--hide-scrollbars"]

# In replay no host name resolves. Requests of workers are not filtered by `context.route`, but they need names, too.
OFFLINE = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]

# A pixel differs if one of its channels differs by more than CHANNEL_MAX (of 255). A page differs if more than SHARE_MAX of its
# pixels do.
CHANNEL_MAX = 24
SHARE_MAX = 0.002

# Pages, each with a JavaScript condition that is true when the page is complete.
PAGES = [
    ("/", "document.links.length === 14"),
    ("/app", "document.querySelectorAll('h2').length === 2 && document.querySelector('#old')?.textContent === 'By XMLHttpRequest.'"),
    # A link of the application /app. In the crawl, the rendered page of this address requested the item.
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

# Actions of a reader of the archive, each with the condition that it must lead to: parts that a behaviour loaded in the crawl.
ACTIONS = {
    "/app": (
        "document.querySelector('#link-2')?.click()",
        "document.querySelector('#item')?.textContent === 'Item 2 in full.' && location.href.endsWith('/app/item/2')",
    ),
    "/endless": ("window.scrollTo(0, document.body.scrollHeight)", "document.querySelectorAll('.part').length === 4"),
    "/lazy": ("window.scrollTo(0, document.body.scrollHeight)", "document.querySelector('#far').naturalWidth === 300"),
    "/more": ("document.querySelector('button')?.click()", "document.querySelectorAll('.part').length === 3"),
    "/windows": ("document.querySelector('button')?.click()", "document.querySelector('button') === null"),
}

# Pages whose picture was taken after a behaviour had changed the visible part. They are compared after the same action.
CHANGED = {"/more", "/windows"}

# Pages that navigate away in replay. The pictures of the crawl and of the live page show them before that.
NAVIGATES_AWAY = {"/away"}

# Pages that never reach the state `networkidle`: their requests do not end, or their frame has no document.
NEVER_IDLE = {"/busy", "/downloads"}

# Pages with a service worker, with the modifier that pywb requires in their address.
SERVICE_WORKERS = {"/worker/": "mp_"}

# Pages that reach a limit in the crawl, with the allowed beginnings of their annotation. On some machines the page /greedy reaches
# its limit before anything can be archived, on others after that.
LIMITED = {"/busy": ("rendered:",), "/greedy": ("notRendered:memory", "rendered:memory")}

# A file that a page downloads, the same as in `xtask/src/judges/replay/rendered.rs`.
FILE = ("/data.bin", bytes(range(256)) * 256)

# The share of pixels that differ between two pictures; 1 if their sizes differ.
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
    served = make_collection(home, warcs, index)
    views = read_views(warcs)
    captured = read_index(index)
    faults = packed(wacz, origin) + limited(warcs, origin) + fetched(captured, origin)
    server, port = start(home)
    worst = 0.0
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES + OFFLINE)
            for path, condition in PAGES:
                view, stamp = views.get(origin + path), [it["timestamp"] for it in captured[origin + path]]
                if view is None or not stamp:
                    faults.append(f"{path}: no capture or no picture in the archive")
                    continue
                replayed = f"http://127.0.0.1:{port}/judged/{stamp[-1]}{SERVICE_WORKERS.get(path, '')}/{origin}{path}"
                found, share = check_page(browser, port, replayed, path, condition, view, home)
                faults += found
                worst = max(worst, share)
            browser.close()
    finally:
        server.terminate()
        server.wait()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES)} rendered pages of {served}, at most {worst:.2%} of their pixels differ, {len(faults)} errors")
    sys.exit(1 if faults else 0)


def check_page(browser, port, url, path, condition, view, home):
    """Checks a replayed page. Returns its errors, and the largest share of pixels that differ from another picture of the page."""
    context = browser.new_context(viewport=WINDOW, service_workers="allow" if path in SERVICE_WORKERS else "block")
    # Only the replay can be reached.
    context.route(lambda target: not target.startswith(f"http://127.0.0.1:{port}/"), lambda route: route.abort())
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    faults, worst = [], 0.0
    try:
        page.goto(url, wait_until="load")
        page.wait_for_function(condition)
        action, expected = ACTIONS.get(path, (None, None))
        if path in CHANGED:
            repeat_until(page, action, expected)
        with open(picture_file(home, path, "crawl"), "wb") as file:
            file.write(view)
        with open(picture_file(home, path, "live"), "rb") as file:
            pictures = {"crawl": view, "live page": file.read()}
        if path in NAVIGATES_AWAY:
            shown = pictures.pop("crawl")
        else:
            if path not in NEVER_IDLE:
                page.wait_for_load_state("networkidle")
            shown = page.screenshot(path=picture_file(home, path, "replay"))
        for source, picture in pictures.items():
            both = [base64.b64encode(it).decode() for it in (picture, shown)]
            share = page.evaluate(DIFFERENCE, [*both, CHANNEL_MAX])
            worst = max(worst, share)
            if share > SHARE_MAX:
                files = picture_file(home, path, "*")
                faults.append(f"{path}: {share:.2%} of the pixels differ from the {source}; compare {files}")
        if action and path not in CHANGED:
            repeat_until(page, action, expected)
    except Exception as problem:
        faults.append(f"{path}: {str(problem).splitlines()[0]}")
    finally:
        context.close()
    return faults, worst


def picture_file(home, path, source):
    """The path of a picture of a page."""
    name = path.strip("/").replace("/", "-") or "home"
    return os.path.join(home, f"{name}-{source}.png")


def repeat_until(page, action, expected):
    """Repeats an action until its condition is true."""
    page.wait_for_function(f"() => {{ if ({expected}) return true; {action}; return false; }}", polling=200)


def read_views(warcs):
    """Reads the archived pictures of pages, by the page's URI."""
    views = {}
    for name in sorted(glob.glob(os.path.join(warcs, "*.warc.gz"))):
        with open(name, "rb") as file:
            for record in ArchiveIterator(file):
                target = record.rec_headers.get_header("WARC-Target-URI") or ""
                if target.startswith("urn:view:"):
                    views[target.removeprefix("urn:view:")] = record.content_stream().read()
    return views


def limited(warcs, origin):
    """Checks that pages which must reach a limit in the crawl have its annotation; returns the errors."""
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
    """Checks captures of requests that only a browser sends: a part of a video, and a download; returns the errors."""
    faults = []
    if not any(it.get("status") == "206" for it in captured[origin + "/clip.webm"]):
        faults.append("/clip.webm: no capture with status 206")
    path, content = FILE
    digest = base64.b32encode(hashlib.sha1(content).digest()).decode()
    if not any(it.get("digest", "").endswith(digest) for it in captured[origin + path]):
        faults.append(f"{path}: no whole capture")
    return faults


def packed(wacz, origin):
    """Checks the list of pages in a package; returns the errors."""
    with zipfile.ZipFile(wacz) as package:
        # Seeds are in the first list, other pages in the second.
        lists = [package.read(f"pages/{name}.jsonl").decode().splitlines() for name in ("pages", "extraPages")]
    pages = {page["url"]: page for lines in lists for page in map(json.loads, lines[1:])}
    faults = []
    for path, _ in PAGES:
        page = pages.get(origin + path, {})
        # loadState 3: the page's text is archived, too.
        if page.get("rendered") is not True or page.get("loadState") != 3:
            faults.append(f"{path}: in the list of pages of the package as {page}")
    return faults


if __name__ == "__main__":
    main()
