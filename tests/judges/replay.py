"""Replays an archive: pywb serves it, Chromium shows it, and every page must show the same as the live page did.

usage: replay.py WARCS INDEX ALL ORIGIN SECURE_ORIGIN CHROMIUM HOME

- WARCS: directory of archives
- INDEX: index for pywb, of `opilio warc index --without-not-modified` (pywb would pass a 304 on to the browser)
- ALL: the complete index
- ORIGIN: origin that `xtask/src/judges/replay/web.rs` served (http://www.judge.localhost:PORT); it is no longer served
- SECURE_ORIGIN: the same over HTTPS
- CHROMIUM: browser
- HOME: directory for the collection and screenshots

Prints a line for each error and exits with 1 if there was one.
"""

import collections
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

from playwright.sync_api import sync_playwright

# Longest wait for pywb or a page, long enough for slow machines.
PATIENCE_S = 180

# Checks of pages: name, path, JavaScript expression, and its expected value.
CHECKS = [
    ("page", "/", "document.querySelector('h1').textContent", "The judged"),
    ("image", "/", "document.querySelector('#picture').naturalWidth", 3),
    ("style", "/", "getComputedStyle(document.querySelector('h1')).color", "rgb(190, 30, 30)"),
    ("style imported", "/", "getComputedStyle(document.querySelector('p')).color", "rgb(30, 110, 60)"),
    ("script", "/", "document.querySelector('#scripted').textContent", "written by a script"),
    ("redirect", "/moved", "document.querySelector('p').textContent", "At last."),
    ("gzip", "/zipped.html", "document.querySelector('p').textContent", "Out of gzip."),
    ("brotli", "/brotli.html", "document.querySelector('p').textContent", "Out of brotli."),
    ("chunked", "/chunked.html", "document.querySelectorAll('p').length", 40),
    ("not ASCII", "/caf%C3%A9.html", "document.querySelector('p').textContent", "Ein Stück Käse."),
    ("same payload elsewhere", "/copy.html", "document.querySelector('p').textContent", "There are two of me."),
    ("revisited, same payload", "/same.html", "document.querySelector('p').textContent", "Never anything new."),
    ("revisited, 304", "/still.html", "document.querySelector('p').textContent", "Not modified."),
    ("certificate of its own", "https:/secure.html", "document.querySelector('p').textContent", "Behind TLS."),
    ("not found", "/missing.html", "document.querySelector('p').textContent", "Status 404."),
]


def main():
    warcs, index, everything, origin, secure_origin, chromium, home = sys.argv[1:]
    served = make_collection(home, warcs, index)
    captured = read_index(everything)
    server, port = start(home)
    faults = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, path, expression, expected in CHECKS:
                url = secure_origin + path.removeprefix("https:") if path.startswith("https:") else origin + path
                # The first and the last capture.
                stamps = sorted(entry["timestamp"] for entry in captured[url])
                stamps = sorted({stamps[0], stamps[-1]}) if stamps else []
                for capture in stamps:
                    shown = evaluate(browser, port, capture, url, expression, home, name)
                    if shown != expected:
                        faults.append(f"{name}: {url} at {capture} shows {shown!r} instead of {expected!r}")
                if not stamps:
                    faults.append(f"{name}: {url} is not in the archive")
            browser.close()
        faults += check_revisits(captured, origin)
    finally:
        server.terminate()
        server.wait()
    for fault in faults:
        print(fault)
    print(f"{len(CHECKS)} checks of pages in {served}, {len(faults)} errors")
    sys.exit(1 if faults else 0)


def make_collection(home, warcs, index):
    """Makes a collection of pywb from the archives and Opilio's index. Returns the number of files as text."""
    shutil.rmtree(os.path.join(home, "collections"), ignore_errors=True)
    manager = os.path.join(os.path.dirname(sys.executable), "wb-manager")
    quiet = dict(cwd=home, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    with open(os.path.join(home, "config.yaml"), "w") as config:
        # Replays the page itself, without pywb's frame and banner.
        config.write("framed_replay: false\n")
    subprocess.run([manager, "init", "judged"], **quiet)
    collection = os.path.join(home, "collections", "judged")
    files = sorted(glob.glob(os.path.join(warcs, "*.warc.gz")))
    for file in files:
        shutil.copy(file, os.path.join(collection, "archive"))
    shutil.copy(index, os.path.join(collection, "indexes", "index.cdxj"))
    return f"{len(files)} files"


def read_index(file):
    """Reads a CDXJ index: captures by URI."""
    captured = collections.defaultdict(list)
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            _, timestamp, fields = line.split(" ", 2)
            fields = json.loads(fields) | {"timestamp": timestamp}
            captured[fields["url"]].append(fields)
    return captured


def start(home):
    """Starts pywb on a free port and waits until it answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    wayback = os.path.join(os.path.dirname(sys.executable), "wayback")
    with open(os.path.join(home, "pywb.log"), "w") as log:
        server = subprocess.Popen(
            [wayback, "-b", "127.0.0.1", "-p", str(port)], cwd=home, stdout=log, stderr=subprocess.STDOUT
        )
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/judged/")
            return server, port
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.1)
    server.kill()
    sys.exit(f"pywb does not start; see {home}/pywb.log")


def evaluate(browser, port, timestamp, url, expression, home, name):
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE_S)
    try:
        page.goto(f"http://127.0.0.1:{port}/judged/{timestamp}/{url}", wait_until="load")
        page.screenshot(path=os.path.join(home, f"{name.replace(' ', '-').replace(',', '')}-{timestamp}.png"))
        return page.evaluate(expression)
    except Exception as problem:
        return str(problem).splitlines()[0]
    finally:
        page.close()


def check_revisits(captured, origin):
    """Checks that pages which were visited twice have revisit records; otherwise the replay above would not test them."""
    faults = []
    for paths, status in [(["/same.html"], "200"), (["/still.html"], "304"), (["/copy.html", "/original.html"], "200")]:
        entries = [entry for path in paths for entry in captured[origin + path]]
        if not any(entry["mime"] == "warc/revisit" and entry["status"] == status for entry in entries):
            faults.append(f"{origin + paths[0]}: no revisit record with status {status}")
    wholes = [path for path in ["/copy.html", "/original.html"] if has_whole(captured[origin + path])]
    if len(wholes) != 1:
        faults.append(f"{len(wholes)} of two URIs with the same payload have a whole capture, not one")
    return faults


def has_whole(entries):
    return any(entry["mime"] != "warc/revisit" for entry in entries)


if __name__ == "__main__":
    main()
