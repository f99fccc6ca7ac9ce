"""The console without a mouse."""

from playwright.sync_api import expect

import daemon
from daemon import JOB


def run(browser, served, **_):
    faults = []
    with daemon.opened(browser, faults, expects=["status of 401"], viewport={"width": 1280, "height": 900}) as page:
        page.goto(served.address)
        keys = page.keyboard
        expect(page.get_by_label("Token")).to_be_focused()
        keys.type(served.token)
        keys.press("Enter")
        expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
        # From the top: the link that skips the bar comes first.
        page.evaluate("document.activeElement.blur()")
        keys.press("Tab")
        expect(page.get_by_text("Skip to the content")).to_be_focused()
        keys.press("Enter")
        expect(page.locator("main")).to_be_focused()

        # The search, and the job by its link.
        keys.press("/")
        expect(page.get_by_label("Search")).to_be_focused()
        keys.type(JOB)
        expect(page.get_by_role("link", name=JOB, exact=True)).to_be_visible()
        tab_to(page, page.get_by_role("link", name=JOB, exact=True))
        keys.press("Enter")
        expect(page.get_by_role("heading", name=JOB, level=1)).to_be_visible()

        # Along a chart.
        plot = page.locator("figure", has_text="URIs per second").locator("svg.plot")
        expect(plot.locator("path.line")).to_have_count(1)
        tab_to(page, plot)
        keys.press("Home")
        expect(page.locator("figure", has_text="URIs per second").locator(".readout")).to_contain_text("/s")

        # Pause and go on.
        tab_to(page, page.get_by_role("button", name="Pause"))
        keys.press("Enter")
        expect(page.locator(".head .badge").first).to_have_text("paused")
        tab_to(page, page.get_by_role("button", name="Resume"))
        keys.press("Enter")
        expect(page.locator(".head .badge").first).to_have_text("running")

        # From page to page, and what keys there are.
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

        # Visits are searched for.
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

        # A question is answered, and the focus is where it was.
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

        # Every thing that has the focus shows it.
        keys.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        if outline == "none":
            faults.append("what has the focus does not show it")
    return faults


def tab_to(page, target):
    """Goes there with the tab key, as far as that is."""
    target.wait_for()
    for _ in range(400):
        if target.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"the tab key does not lead to {target}")
