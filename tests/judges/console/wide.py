"""A job with a hundred thousand queues and hosts: its lists can be paged through, filtered, sorted, and searched by name."""

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
    with daemon.open_page(browser, faults, expects=["status of 40[14]"], viewport={"width": 1280, "height": 900}) as page:
        served.sign_in(page)
        page.goto(served.job_address("frontier", JOB))
        listed = rows(page, "Queues")
        expect(listed.first).to_contain_text("host-000000,")
        if listed.count() > SHOWN_MAX:
            faults.append(f"{listed.count()} rows are in the document at once")
        page.get_by_role("button", name="Next").click()
        expect(listed.first).to_contain_text("host-000050,")
        page.get_by_role("button", name="Previous").click()
        expect(listed.first).to_contain_text("host-000000,")
        # The beginning of a name opens the list in the middle; paging continues from there.
        page.get_by_label("Queue name").fill("localhost,wide,host-0654")
        page.get_by_role("button", name="Open").click()
        expect(listed.first).to_contain_text("host-065400,")
        page.get_by_role("button", name="Next").click()
        expect(listed.first).to_contain_text("host-065450,")
        page.screenshot(path=f"{screenshots}/frontier-wide.png")
        page.get_by_label("Order").select_option("size")
        expect(listed.first).to_contain_text("host-077777,")
        page.get_by_label("State").select_option("frozen")
        expect(page.get_by_text("No queue is frozen.")).to_be_visible()
        page.get_by_label("Queue name").fill("localhost,wide,host-077777,")
        page.get_by_role("button", name="Open").click()
        expect(fact(page, "Ready")).to_have_text("3")
        page.get_by_role("button", name="Freeze", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Freeze", exact=True).click()
        expect(fact(page, "State")).to_contain_text("frozen")
        page.goto(served.job_address("frontier?state=frozen", JOB))
        expect(listed).to_have_count(1)
        page.goto(served.job_address("reports?kind=frontier-summary", JOB))
        expect(page.locator("pre.lines")).to_contain_text("queues: 100000")
        hosts(page, served, screenshots)
    return faults


def hosts(page, served, screenshots):
    page.goto(served.job_address("hosts", JOB))
    listed = rows(page, "Hosts")
    expect(page.get_by_text(f"{QUEUES:,} hosts")).to_be_visible()
    expect(listed.first).to_contain_text("host-077777.")
    expect(listed).to_have_count(50)
    page.screenshot(path=f"{screenshots}/hosts-wide.png", full_page=True)
    page.get_by_role("button", name="Next").click()
    expect(page.locator(".position")).to_have_text("51 to 100")
    page.get_by_label("Hosts with", exact=True).fill("host-0123")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("100 hosts")).to_be_visible()


def fill(served):
    """Creates a job that does not run, and imports the frontier journal of another crawl."""
    served.ask("POST", "jobs", {"name": JOB, "profile": "snapshot", "contact_url": "https://crawler.harvest.library/about", "seeds": ["http://host-000000.wide.localhost/"], "start": False})
    journal = os.path.join(served.home, "wide.jsonl")
    with open(journal, "w") as file:
        for number in range(QUEUES):
            # One queue is longer than the others.
            for page in range(3 if number == 77_777 else 1):
                file.write(json.dumps({"uri": f"http://host-{number:06}.wide.localhost/{page or ''}"}) + "\n")
    # Its log has one visit of each host. One of the visits was large.
    log = os.path.join(served.jobs, JOB, "logs", "crawl.log")
    os.makedirs(os.path.dirname(log), exist_ok=True)
    with open(log, "w") as file:
        for number in range(QUEUES):
            size = 50_000_000 if number == 77_777 else 100 + number % 7
            file.write(f"2026-11-20T12:34:56.789Z   200 {size:>10} http://host-{number:06}.wide.localhost/ - - text/html #001 20261120123455001+42 - - -\n")
    served.run("frontier", "import", os.path.join(served.jobs, JOB), journal)
