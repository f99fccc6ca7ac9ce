"""Tests the web console in Chromium, against a daemon that crawls.

usage: judge.py OPILIO CHROMIUM AXE HOME SCREENSHOTS SEED NATS

- OPILIO: the program
- CHROMIUM: browser
- AXE: the file axe.min.js
- HOME: directory with counter.wasm (an observer) and broken.wasm (an extractor that traps)
- SCREENSHOTS: directory for pictures
- SEED: page of a changing web on loopback
- NATS: host and port of a NATS server

Prints the number of errors of each story, with the errors, and exits with 1 if there was one.
"""

import os
import sys
import time
import traceback

from playwright.sync_api import sync_playwright

import actions
import browsers
import daemon
import journey
import keyboard
import looks
import many
import nodes
import outage
import plugin_pages
import profiles
import reading
import roles
import store
import tabs
import wide


def main():
    opilio, chromium, axe, home, screenshots, seed, nats = sys.argv[1:]
    os.makedirs(screenshots, exist_ok=True)
    served = daemon.Daemon(opilio, home)
    bucket = store.Store(home)
    faults = []
    served.start()
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for story in [actions, reading, browsers, plugin_pages, keyboard, journey, profiles, store, nodes, roles, looks, tabs, wide, many, outage]:
                name, began = story.__name__, time.monotonic()
                try:
                    found = story.run(browser, served, seed=seed, axe=axe, screenshots=screenshots, store=bucket, nats=nats)
                except Exception:
                    found = [traceback.format_exc()]
                faults += found
                print(f"{name}: {len(found)} errors, {time.monotonic() - began:.0f} s", *found, sep="\n  ", flush=True)
            browser.close()
    finally:
        served.end()
        bucket.end()
    sys.exit(1 if faults else 0)


main()
