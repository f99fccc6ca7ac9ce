"""The console as a viewer and as an operator: actions that a role may not use are not offered, and the API refuses them."""

import json
import re

from playwright.sync_api import expect

import daemon
import looks
from daemon import JOB
from parts import rows

# Names of the buttons that viewers have.
VIEWERS = re.compile(
    r"^(Sign out|Change colours|Keys|Refresh|Open|List|Count|Previous|Next|Earlier|Latest|From the beginning|Show the capture"
    r"|5 minutes|an hour|a day|a month|all|Job|State|URIs|Queued|Content|Started|As a table|Save as .*|All settings of this URI|Include expert settings|Plugins of each stage|Components and settings .*"
    r"|Index of all archive files|List of pages|Search|Host|Documents|Bytes|Errors|Freshness|Last visit"
    r"|Compare|Changes of version .*|To newest: version .*|Difference to the newest version)$"
)
# Names of the buttons that only administrators have. "Delete" on the page of a URI is for operators.
ADMINS = re.compile(r"^(Replace .*|Delete|Delete (loopback|museum.*))$")


def run(browser, served, seed, screenshots, **_):
    faults = []
    description = served.ask("GET", "openapi.json")
    for role in ["viewer", "operator"]:
        # The browser reports the requests that are refused below.
        with daemon.open_page(browser, faults, expects=["status of 40[0-9]", "status of 422"], viewport={"width": 1280, "height": 900}) as page:
            served.sign_in(page, token=served.tokens[role])
            faults += [f"{role}: {fault}" for fault in check_offered(page, served, seed, role)]
            page.goto(served.address + "#/daemon")
            expect(page.locator("dl.facts")).to_contain_text(role)
            page.screenshot(path=f"{screenshots}/role-{role}.png")
            faults += [f"{role}: {fault}" for fault in check_refused(page, description, role)]
            if role == "operator":
                operate(page, served)
    return faults


def check_offered(page, served, seed, role):
    """Opens every page. Returns an error for each button that the role may not have."""
    faults, queue = [], None
    for name, (_, path) in looks.PAGES.items():
        page.goto(served.address + path if path.startswith("#") else served.job_address(path.format(queue=queue, seed=seed)))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        looks.wait_for_content(page, name)
        if name == "frontier":
            queue = rows(page, "Queues").first.locator("a").inner_text()
        # One script reads all names, because a list of a running crawl may change between two calls.
        labels = page.evaluate(
            """() => [...document.querySelectorAll("button, summary:not(.section > *, .plugin-settings > *), a.button")].filter((element) => element.checkVisibility())
                .map((element) => element.ariaLabel ?? element.innerText.trim())"""
        )
        for label in sorted(set(labels)):
            is_wrong = not VIEWERS.match(label) if role == "viewer" else ADMINS.match(label) and name != "uri"
            if is_wrong:
                faults.append(f"{name} offers {label!r}")
        if role == "viewer" and page.get_by_role("link", name="New job").count() > 0:
            faults.append(f"{name} has a link to new jobs")
    return faults


def check_refused(page, description, role):
    """Sends every request that the role may not send, with the page's session. Returns an error for each that is not refused."""
    faults = []
    for path, item in description["paths"].items():
        for method, operation in item.items():
            needs = needed_role(method, path)
            if needs is None or needs == role:
                continue
            address = path.replace("{job}", JOB)
            address = re.sub(r"\{action\}", lambda _: action(operation), address)
            address = re.sub(r"\{\w+\}", "nothing", address)
            status = page.evaluate(
                """([method, address]) => fetch(address.slice(1), { method, headers: { "content-type": "application/json" },
                    body: method === "GET" ? undefined : JSON.stringify({ component: "builtin:html" }) }).then((answer) => answer.status)""",
                [method.upper(), address],
            )
            if status != 403:
                faults.append(f"{method} {address} has status {status}, not 403")
    return faults


def needed_role(method, path):
    """The role that an operation needs; None if every role may use it."""
    # Checks of a text change nothing.
    if path.endswith(("/session", "/profiles/check", "/profiles/form")):
        return None
    if path.endswith("/audit") or path.endswith("/replace") or (method == "delete" and path.endswith(("/{job}", "/{profile}"))):
        return "admin"
    return None if method == "get" else "operator"


def action(operation):
    """The first value that the description allows for the parameter `action`."""
    for parameter in operation["parameters"]:
        if parameter["name"] == "action":
            return parameter["schema"]["enum"][0]
    raise AssertionError(f"no parameter action in {json.dumps(operation)[:200]}")


def operate(page, served):
    """An action of an operator succeeds, and the history has the operator's name."""
    page.goto(served.job_address("seeds"))
    page.get_by_role("button", name="Add seeds").click()
    page.get_by_role("dialog").get_by_label("Seeds").fill("http://omar.harvest.localhost/")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.goto(served.job_address("history"))
    expect(page.locator("ol.timeline li", has_text="omar").first).to_be_visible()
