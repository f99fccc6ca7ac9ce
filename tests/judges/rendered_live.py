"""Photographs pages that need a browser as their server shows them, without Opilio in between. `rendered.py` compares the pages of a
crawl with these pictures.

usage: rendered_live.py ORIGIN CHROMIUM HOME

ORIGIN is what `xtask/src/judges/replay/rendered.rs` serves, CHROMIUM the browser of the crawl, HOME where the pictures go. Prints a line
for each fault; exits 1 where there was one.
"""

import sys

from playwright.sync_api import sync_playwright

from rendered import CHANGED, DEEDS, LEFT, PAGES, RESTLESS, SWITCHES, WINDOW, WORKED, do, picture_file
from replay import PATIENCE_S

# All names are on this machine.
ONLINE = ["--host-resolver-rules=MAP *.judge.localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]


def main():
    origin, chromium, home = sys.argv[1:]
    faults = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=SWITCHES + ONLINE)
        for path, holds in PAGES:
            try:
                photograph(browser, origin, path, holds, home)
            except Exception as problem:
                faults.append(f"{path}: {str(problem).splitlines()[0]}")
        browser.close()
    for fault in faults:
        print(fault)
    print(f"{len(PAGES)} live pages photographed, {len(faults)} faults")
    sys.exit(1 if faults else 0)


def photograph(browser, origin, path, holds, home):
    """Takes the picture of a page once it is as it is in the crawl."""
    context = browser.new_context(viewport=WINDOW, service_workers="allow" if path in WORKED else "block")
    try:
        page = context.new_page()
        page.set_default_timeout(1000 * PATIENCE_S)
        if path in LEFT:
            # A browser stays where it is after this status.
            page.route("**/left", lambda route: route.fulfill(status=204))
        page.goto(origin + path, wait_until="load")
        if path not in LEFT:
            page.wait_for_function(holds)
            if path in CHANGED:
                do(page, *DEEDS[path])
            if path not in RESTLESS:
                page.wait_for_load_state("networkidle")
        page.screenshot(path=picture_file(home, path, "live"))
    finally:
        context.close()


if __name__ == "__main__":
    main()
