"""Takes pictures of live pages that need a browser, without Opilio. `rendered.py` compares the replayed pages with them.

usage: rendered_live.py ORIGIN CHROMIUM HOME

- ORIGIN: origin that `xtask/src/judges/replay/rendered.rs` serves
- CHROMIUM: browser of the crawl
- HOME: directory for the pictures

Prints a line for each error and exits with 1 if there was one.
"""

import sys

from playwright.sync_api import sync_playwright

from rendered import (
    ACTIONS,
    CHANGED,
    NAVIGATES_AWAY,
    NEVER_IDLE,
    PAGES,
    SERVICE_WORKERS,
    SWITCHES,
    WINDOW,
    picture_file,
    repeat_until,
)
from replay import PATIENCE_S

# All host names of the judge resolve to this machine.
ONLINE = ["--host-resolver-rules=MAP *.judge.localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


def main():
    origin, chromium, home = sys.argv[1:]
    faults = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES + ONLINE)
        for path, condition in PAGES:
            try:
                photograph(browser, origin, path, condition, home)
            except Exception as problem:
                faults.append(f"{path}: {str(problem).splitlines()[0]}")
        browser.close()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES)} pictures of live pages, {len(faults)} errors")
    sys.exit(1 if faults else 0)


def photograph(browser, origin, path, condition, home):
    """Takes the picture of a page when the page is complete."""
    context = browser.new_context(viewport=WINDOW, service_workers="allow" if path in SERVICE_WORKERS else "block")
    try:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        if path in NAVIGATES_AWAY:
            # With status 204 a browser does not leave the page.
            page.route("**/left", lambda route: route.fulfill(status=204))
        page.goto(origin + path, wait_until="load")
        if path not in NAVIGATES_AWAY:
            page.wait_for_function(condition)
            if path in CHANGED:
                repeat_until(page, *ACTIONS[path])
            if path not in NEVER_IDLE:
                page.wait_for_load_state("networkidle")
        page.screenshot(path=picture_file(home, path, "live"))
    finally:
        context.close()


if __name__ == "__main__":
    main()
