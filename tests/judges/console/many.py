"""A list of a thousand jobs: searched, sorted, and shown one page at a time."""

from playwright.sync_api import expect

import daemon

JOBS = 1000
SHOWN_MAX = 100


def run(browser, served, screenshots, **_):
    faults = []
    before = served.ask("GET", "jobs?limit=1")["total"]
    served.ask("POST", f"jobs/{daemon.JOB}/clone", {"name": "harvest-0000"})
    served.copy_job("harvest-0000", [f"harvest-{number:04}" for number in range(1, JOBS - before)])
    with daemon.open_page(browser, faults, expects=["status of 401"], viewport={"width": 1280, "height": 900}) as page:
        served.sign_in(page)
        expect(page.get_by_text(f"{JOBS:,} jobs")).to_be_visible()
        listed = page.locator("tbody tr")
        if listed.count() > SHOWN_MAX:
            faults.append(f"{listed.count()} rows are in the document at once")
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
        expect(listed).to_have_count(50)
        head = page.get_by_role("columnheader", name="Job")
        for order, first in [("ascending", "harvest-0000"), ("descending", daemon.JOB)]:
            head.get_by_role("button").click()
            expect(head).to_have_attribute("aria-sort", order)
            expect(listed.first).to_contain_text(first)
        page.screenshot(path=f"{screenshots}/jobs-thousand.png")
    return faults
