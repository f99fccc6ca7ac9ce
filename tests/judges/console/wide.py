"""A job with a hundred thousand queues: paged through, filtered, sorted, and found by name."""

import json
import os

from playwright.sync_api import expect

import daemon
from parts import fact, rows

JOB = "wide"
QUEUES = 100_000
SHOWN_MAX = 100


def run(browser, served, screenshots, **_):
    faults = []
    fill(served)
    with daemon.opened(browser, faults, expects=["status of 40[14]"], viewport={"width": 1280, "height": 900}) as page:
        served.sign_in(page)
        page.goto(served.of_job("frontier", JOB))
        listed = rows(page, "Queues")
        expect(listed.first).to_contain_text("host-000000,")
        if listed.count() > SHOWN_MAX:
            faults.append(f"{listed.count()} rows are in the document at once")
        page.get_by_role("button", name="Next").click()
        expect(listed.first).to_contain_text("host-000050,")
        page.get_by_role("button", name="Previous").click()
        expect(listed.first).to_contain_text("host-000000,")
        # By the beginning of a name to the middle of them, and on from there.
        page.get_by_label("Queue by name").fill("localhost,wide,host-0654")
        page.get_by_role("button", name="Open").click()
        expect(listed.first).to_contain_text("host-065400,")
        page.get_by_role("button", name="Next").click()
        expect(listed.first).to_contain_text("host-065450,")
        page.screenshot(path=f"{screenshots}/frontier-wide.png")
        page.get_by_label("Order").select_option("size")
        expect(listed.first).to_contain_text("host-077777,")
        page.get_by_label("State").select_option("frozen")
        expect(page.get_by_text("No queue is frozen.")).to_be_visible()
        page.get_by_label("Queue by name").fill("localhost,wide,host-077777,")
        page.get_by_role("button", name="Open").click()
        expect(fact(page, "Ready")).to_have_text("3")
        page.get_by_role("button", name="Freeze", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Freeze", exact=True).click()
        expect(fact(page, "State")).to_contain_text("frozen")
        page.goto(served.of_job("frontier?state=frozen", JOB))
        expect(listed).to_have_count(1)
        page.goto(served.of_job("reports?kind=frontier-summary", JOB))
        expect(page.locator("pre.lines")).to_contain_text("queues: 100000")
    return faults


def fill(served):
    """A job at rest that takes over what another crawl had not finished."""
    served.ask("POST", "jobs", {"name": JOB, "profile": "snapshot", "contact_url": "https://crawler.harvest.library/about", "seeds": ["http://host-000000.wide.localhost/"], "start": False})
    journal = os.path.join(served.home, "wide.jsonl")
    with open(journal, "w") as file:
        for number in range(QUEUES):
            # One queue is longer than the others.
            for page in range(3 if number == 77_777 else 1):
                file.write(json.dumps({"uri": f"http://host-{number:06}.wide.localhost/{page or ''}"}) + "\n")
    served.run("frontier", "import", os.path.join(served.jobs, JOB), journal)
