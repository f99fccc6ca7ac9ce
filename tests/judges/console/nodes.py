"""A crawl that two nodes share: its parts on the job's page, a pause of all parts, and the nodes on the page Daemon.

One part has no node until the second node takes it. Then the second node is drained, leaves, and is removed from the list.
"""

import json
import os
import re
import subprocess

from playwright.sync_api import expect

import daemon
from keyboard import tab_to
from looks import check_screens
from parts import confirm, fact, rows

CRAWL = "shared"
NODES = ["east", "west"]
WAITING = "part-1"
# One site for each part, in the order of the parts.
SITES = ["maps.localhost", "letters.localhost", "books.localhost"]
CLUSTER = """
[cluster]
servers = ["nats://{nats}"]
node = "{name}"
time-to-live = "5s"
"""
STORE = """
[archive.store]
url = "file://{folder}"

[checkpoint]
publish-every = "5s"
"""
AT_WORK = re.compile("^(running|at rest)$")


class Node(daemon.Daemon):
    """A daemon in the cluster, and its processes of the shared crawl."""

    def __init__(self, opilio, home, name, nats, profile):
        super().__init__(opilio, os.path.join(home, name))
        with open(self.config, "a") as file:
            file.write(CLUSTER.format(nats=nats, name=name))
        self.profile = os.path.join(self.home, "profiles", f"{CRAWL}.toml")
        with open(self.profile, "w") as file:
            file.write(profile)
        self.crawls = []
        self.start()

    def crawl(self, job, *more):
        """Starts a process of the shared crawl in a job of this daemon."""
        command = [self.opilio, "crawl", self.profile, "--job", os.path.join(self.jobs, job), "--quiet"]
        command += ["--config", self.config, "--cluster-job", CRAWL, "--nodes", ",".join(NODES), "--parts", str(len(SITES)), *more]
        with open(self.log, "a") as log:
            self.crawls.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log))

    def end(self):
        """Ends the processes and the daemon."""
        for crawl in self.crawls:
            crawl.terminate()
        for crawl in self.crawls:
            crawl.wait()
        self.stop()


def run(browser, served, seed, axe, screenshots, nats, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    home = os.path.join(served.home, "nodes")
    folder = os.path.join(home, "archive")
    os.makedirs(folder)
    seeds = [seed.replace("www.harvest.localhost", site) for site in SITES]
    profile = daemon.PROFILE.replace('name = "news"', f'name = "{CRAWL}"').replace("seeds = []", f"seeds = {json.dumps(seeds)}")
    profile += daemon.LOOPBACK + STORE.format(folder=folder)
    nodes = []
    try:
        for name in NODES:
            nodes.append(Node(served.opilio, home, name, nats, profile))
        for node in nodes:
            node.crawl(CRAWL)
        options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", "reduced_motion": "reduce"}
        with daemon.open_page(browser, faults, expects=["status of 40[139]"], **options) as page:

            def look(step):
                faults.extend(check_screens(page, axe, f"{screenshots}/nodes-{step}"))

            east, west = nodes
            east.sign_in(page)
            # Data of the cluster is available only while the job runs.
            expect(rows(page, "Jobs").filter(has_text=CRAWL)).to_contain_text("running")
            page.get_by_role("link", name=CRAWL, exact=True).click()
            expect(page.get_by_role("heading", name=CRAWL, level=1)).to_be_visible()
            faults += parts(page, look)
            west.crawl(f"{CRAWL}-{WAITING}", "--take-over", WAITING)
            begun(page, look)
            paused(page)
            page.goto(f"{east.address}#/daemon")
            drained(page, look)
            west.stop()
            removed(page, look)
    finally:
        for node in nodes:
            node.end()
    return faults


def part(page, name):
    """The row of a part."""
    head = page.locator("th", has_text=re.compile(f"^{name}"))
    return rows(page, "Parts of the crawl").filter(has=head)


def cell(page, name, title):
    """A cell in the row of a part."""
    return part(page, name).locator(f'td[data-title="{title}"]')


def parts(page, look):
    """Each node has a part, and one part has no node. Returns an error if the sum differs from the rows."""
    expect(rows(page, "Parts of the crawl")).to_have_count(len(SITES))
    for name in NODES:
        expect(cell(page, name, "Node")).to_have_text(name)
        expect(cell(page, name, "State")).to_have_text(AT_WORK)
        expect(cell(page, name, "Fetched")).to_have_text(re.compile("^[1-9]"))
        expect(cell(page, name, "Snapshot")).not_to_have_text("–")
    expect(part(page, "east").locator("th")).to_contain_text("this job")
    expect(cell(page, WAITING, "Node")).to_have_text("–")
    expect(cell(page, WAITING, "State")).to_have_text(re.compile("^new"))
    # The remedy is there, too.
    expect(cell(page, WAITING, "State")).to_contain_text("no node has begun it; start the crawl on its node")
    look("parts")
    # One script reads the sentence and the rows, because both change with every answer.
    sentence, fetched = page.evaluate(
        """() => {
            const texts = (selector) => [...document.querySelectorAll(selector)].map((element) => element.textContent);
            return [texts("p").find((text) => text.startsWith("Crawl ")), texts('td[data-title="Fetched"]')];
        }"""
    )
    total = sum(int(number.replace(",", "")) for number in fetched if number != "–")
    found = re.search(r"([\d,]+) fetched", sentence or "")
    if not found or int(found[1].replace(",", "")) != total:
        return [f"the parts have fetched {fetched}, but the sum is: {sentence}"]
    return []


def begun(page, look):
    """The second node has taken the part without a node."""
    expect(cell(page, WAITING, "Node")).to_have_text("west")
    expect(cell(page, WAITING, "State")).to_have_text(AT_WORK)
    expect(cell(page, WAITING, "Fetched")).to_have_text(re.compile("^[1-9]"))
    look("begun")


def paused(page):
    """Pausing and resuming the job applies to all parts."""
    for button, check in [("Pause", "to_contain_text"), ("Resume", "not_to_contain_text")]:
        tab_to(page, page.get_by_role("button", name=button))
        page.keyboard.press("Enter")
        for name in [*NODES, WAITING]:
            getattr(expect(cell(page, name, "State")), check)("paused")


def drained(page, look):
    """Drains the second node, and ends the draining."""
    listed = rows(page, "Nodes of the cluster, by name")
    expect(listed).to_have_count(len(NODES))
    expect(listed.filter(has_text="live")).to_have_count(len(NODES))
    expect(listed.filter(has_text="leader")).to_have_count(1)
    expect(fact(page, "Node")).to_contain_text("east")
    west = listed.filter(has_text="west")
    tab_to(page, west.get_by_role("button", name="Drain", exact=True))
    page.keyboard.press("Enter")
    expect(west).to_contain_text("drained")
    look("drained")
    tab_to(page, west.get_by_role("button", name="End draining", exact=True))
    page.keyboard.press("Enter")
    expect(west).not_to_contain_text("drained")


def removed(page, look):
    """The second node has left; it is removed from the list."""
    listed = rows(page, "Nodes of the cluster, by name")
    west = listed.filter(has_text="west")
    expect(west).to_contain_text("left")
    remove = west.get_by_role("button", name="Remove …", exact=True)
    # The table does not update a cell whose button has the focus.
    page.evaluate("document.activeElement.blur()")
    tab_to(page, remove)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    look("removal")
    confirm(page, "Remove")
    expect(listed).to_have_count(1)
