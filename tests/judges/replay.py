"""Replays an archive: pywb serves it, Chromium shows it, and every page must look as the live one did.

usage: replay.py WARCS ORIGIN CHROMIUM HOME

WARCS is a directory of archives, ORIGIN what `xtask/src/judges/replay.rs` served (http://www.judge.localhost:PORT; it is
gone by now), CHROMIUM a browser, HOME where collection and screenshots go. Prints a line for each fault; exits 1 where
there was one.
"""

import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from playwright.sync_api import sync_playwright

# What each page must show once it is there: a name, where it is, what is asked of it, and the answer.
LOOKS = [
    ("page", "/", "document.querySelector('h1').textContent", "The judged"),
    ("image", "/", "document.querySelector('#picture').naturalWidth", 3),
    ("style", "/", "getComputedStyle(document.querySelector('h1')).color", "rgb(1, 2, 3)"),
    ("style imported", "/", "getComputedStyle(document.querySelector('p')).color", "rgb(4, 5, 6)"),
    ("script", "/", "document.querySelector('#scripted').textContent", "written by a script"),
    ("redirect", "/moved", "document.querySelector('p').textContent", "At last."),
    ("gzip", "/zipped.html", "document.querySelector('p').textContent", "Out of gzip."),
    ("brotli", "/brotli.html", "document.querySelector('p').textContent", "Out of brotli."),
    ("chunked", "/chunked.html", "document.querySelectorAll('p').length", 40),
    ("not ASCII", "/caf%C3%A9.html", "document.querySelector('p').textContent", "Ein Stück Käse."),
    ("same payload elsewhere", "/copy.html", "document.querySelector('p').textContent", "There are two of me."),
    ("revisited, same payload", "/same.html", "document.querySelector('p').textContent", "Never anything new."),
    ("revisited, 304", "/still.html", "document.querySelector('p').textContent", "Not modified."),
    ("not found", "/missing.html", "document.querySelector('p').textContent", "Status 404."),
]


def main():
    warcs, origin, chromium, home = sys.argv[1:]
    collection = serve_from(home, warcs)
    server, port = start(home)
    faults = []
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name, path, question, expected in LOOKS:
                for capture in captures(port, origin + path):
                    shown = look(browser, port, capture, origin + path, question, home, name)
                    if shown != expected:
                        faults.append(f"{name}: {origin + path} at {capture} shows {shown!r} instead of {expected!r}")
                if not captures(port, origin + path):
                    faults.append(f"{name}: {origin + path} is not in the archive")
            browser.close()
        faults += revisits(port, origin)
    finally:
        server.terminate()
        server.wait()
    for fault in faults:
        print(fault)
    print(f"{len(LOOKS)} looks at pages of {collection}, {len(faults)} faults")
    sys.exit(1 if faults else 0)


def serve_from(home, warcs):
    """Makes a collection of the archives."""
    shutil.rmtree(os.path.join(home, "collections"), ignore_errors=True)
    manager = os.path.join(os.path.dirname(sys.executable), "wb-manager")
    quiet = dict(cwd=home, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
    with open(os.path.join(home, "config.yaml"), "w") as config:
        # The page itself, not a frame with a banner around it.
        config.write("framed_replay: false\n")
    subprocess.run([manager, "init", "judged"], **quiet)
    files = sorted(glob.glob(os.path.join(warcs, "*.warc.gz")))
    subprocess.run([manager, "add", "judged", *files], **quiet)
    return f"{len(files)} files"


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
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/judged/")
            return server, port
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.1)
    server.kill()
    sys.exit(f"pywb does not start; see {home}/pywb.log")


def index(port, url):
    query = urllib.parse.urlencode({"url": url, "output": "json"})
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/judged/cdx?{query}") as answer:
        return [json.loads(line) for line in answer.read().decode().splitlines() if line]


def captures(port, url):
    """The first and the last capture of a URI."""
    stamps = sorted(entry["timestamp"] for entry in index(port, url))
    return sorted({stamps[0], stamps[-1]}) if stamps else []


def look(browser, port, timestamp, url, question, home, name):
    page = browser.new_page()
    try:
        page.goto(f"http://127.0.0.1:{port}/judged/{timestamp}/{url}", wait_until="load")
        page.screenshot(path=os.path.join(home, f"{name.replace(' ', '-').replace(',', '')}-{timestamp}.png"))
        return page.evaluate(question)
    except Exception as problem:
        return str(problem).splitlines()[0]
    finally:
        page.close()


def revisits(port, origin):
    """What was visited again must have revisit records, or the pages above prove nothing."""
    faults = []
    for path in ["/same.html", "/still.html", "/copy.html"]:
        entries = index(port, origin + path) + (index(port, origin + "/original.html") if path == "/copy.html" else [])
        if not any(entry.get("mime") == "warc/revisit" for entry in entries):
            faults.append(f"{origin + path}: no revisit record")
    return faults


if __name__ == "__main__":
    main()
