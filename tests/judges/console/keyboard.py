"""Uses the console with the keyboard only."""

from playwright.sync_api import expect

import daemon
from daemon import JOB


def run(browser, served, **_):
    faults = []
    with daemon.open_page(browser, faults, expects=["status of 401"], viewport={"width": 1280, "height": 900}) as page:
        page.goto(served.address)
        keys = page.keyboard
        expect(page.get_by_label("Token")).to_be_focused()
        keys.type(served.token)
        keys.press("Enter")
        expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
        # The first link of the page skips the bar.
        page.evaluate("document.activeElement.blur()")
        keys.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        keys.press("Enter")
        expect(page.locator("main")).to_be_focused()

        # A search, and the link of the job.
        keys.press("/")
        expect(page.get_by_label("Search")).to_be_focused()
        keys.type(JOB)
        expect(page.get_by_role("link", name=JOB, exact=True)).to_be_visible()
        tab_to(page, page.get_by_role("link", name=JOB, exact=True))
        keys.press("Enter")
        expect(page.get_by_role("heading", name=JOB, level=1)).to_be_visible()

        # The crosshair of a chart.
        plot = page.locator("figure", has_text="URIs per second").locator("svg.plot")
        expect(plot.locator("path.line")).to_have_count(1)
        tab_to(page, plot)
        keys.press("Home")
        expect(page.locator("figure", has_text="URIs per second").locator(".readout")).to_contain_text("/s")

        # Pause and resume.
        tab_to(page, page.get_by_role("button", name="Pause"))
        keys.press("Enter")
        expect(page.locator(".head .badge").first).to_have_text("paused")
        tab_to(page, page.get_by_role("button", name="Resume"))
        keys.press("Enter")
        expect(page.locator(".head .badge").first).to_have_text("running")

        # Shortcuts to pages, and the list of keys.
        for key, title in [("f", "Frontier"), ("s", "Seeds"), ("p", "Plugins"), ("l", "Logs"), ("t", "Hosts"), ("b", "Compare"), ("h", "History")]:
            page.evaluate("document.activeElement.blur()")
            keys.press("g")
            keys.press(key)
            expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()
        keys.press("?")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", name="Keys")).to_be_visible()
        keys.press("Escape")
        expect(dialog).to_have_count(0)

        # A search in the crawl log.
        keys.press("g")
        keys.press("e")
        expect(page.get_by_role("heading", name="Crawl log", level=1)).to_be_visible()
        keys.press("/")
        expect(page.get_by_label("Lines with")).to_be_focused()
        keys.type("robots")
        keys.press("Tab")
        expect(page.get_by_label("Status")).to_be_focused()
        keys.type("2xx,4xx")
        keys.press("Enter")
        expect(page.get_by_role("region", name="Visits", exact=True).locator("tbody tr").first).to_contain_text("robots.txt")

        # A dialog is closed, and the focus returns to its button.
        page.evaluate("document.activeElement.blur()")
        keys.press("g")
        keys.press("s")
        expect(page.get_by_role("heading", name="Seeds", level=1)).to_be_visible()
        add = page.get_by_role("button", name="Add seeds")
        tab_to(page, add)
        keys.press("Enter")
        expect(page.get_by_role("dialog").get_by_label("Seeds")).to_be_focused()
        keys.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(add).to_be_focused()

        # The focused element has a visible outline.
        keys.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        if outline == "none":
            faults.append("the focused element has no visible outline")
    return faults


def tab_to(page, target):
    """Moves the focus to an element with the tab key."""
    target.wait_for()
    for _ in range(400):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the tab key does not reach {target}")
