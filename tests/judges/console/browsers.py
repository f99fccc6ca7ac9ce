"""A job that renders pages: its pages in browsers and the pictures of rendered pages, in light and dark and on a phone."""

import os

from playwright.sync_api import expect

import daemon
from looks import SCREENS, accessibility_faults
from parts import rows

JOB = "pictures"
PROFILE = f"""
[browser]
render = "always"
sandbox = {"false" if os.geteuid() == 0 else "true"}

[stacks]
behave = ["autoscroll"]
"""


def run(browser, served, seed, axe, screenshots, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    # Profiles without Chromium's sandbox are not accepted over the API, so this one is in the daemon's folder.
    with open(os.path.join(served.home, "profiles", "rendering.toml"), "w") as file:
        file.write(daemon.PROFILE + daemon.LOOPBACK + PROFILE)
    served.ask("POST", "jobs", {"name": JOB, "profile": "rendering", "seeds": [seed], "start": True})
    for screen, options in SCREENS.items():
        with daemon.open_page(browser, faults, expects=["status of 40[1349]"], reduced_motion="reduce", **options) as page:
            served.sign_in(page)
            page.goto(served.job_address(job=JOB))
            # The rows change all the time, so only their presence is checked.
            expect(rows(page, "Pages in browsers").first).to_be_attached()
            expect(page.get_by_text("pages rendered", exact=False)).to_be_visible()
            look(page, f"{screenshots}/browsers-{screen}.png", "Rendered last", options, faults, axe)
            page.goto(served.job_address(f"uri?uri={seed}", job=JOB))
            look(page, f"{screenshots}/uri-pictures-{screen}.png", "In the browser", options, faults, axe)
    served.ask("POST", f"jobs/{JOB}/stop")
    return faults


def look(page, screenshot, heading, options, faults, axe):
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    page.get_by_role("heading", name=heading).scroll_into_view_if_needed()
    picture = page.locator(".pictures img").first
    expect(picture).to_be_visible()
    expect(picture).to_have_js_property("naturalWidth", 640)
    page.screenshot(path=screenshot, full_page=True)
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > options["viewport"]["width"]:
        faults.append(f"{screenshot}: {width} pixels wide")
    faults += [f"{heading}: {fault}" for fault in accessibility_faults(page, axe)]
