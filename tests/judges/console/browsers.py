"""A job renders its pages: what its browsers do now, and pictures of what they showed, in light and dark and on a telephone."""

import os

from playwright.sync_api import expect

import daemon
from looks import SCREENS, accessible
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
    # What may go without Chromium's sandbox comes from the daemon's own folder, not over the API.
    with open(os.path.join(served.home, "profiles", "rendering.toml"), "w") as file:
        file.write(daemon.PROFILE + daemon.LOOPBACK + PROFILE)
    served.ask("POST", "jobs", {"name": JOB, "profile": "rendering", "seeds": [seed], "start": True})
    for screen, options in SCREENS.items():
        with daemon.opened(browser, faults, expects=["status of 40[1349]"], reduced_motion="reduce", **options) as page:
            served.sign_in(page)
            page.goto(served.of_job(job=JOB))
            # Pages come and go; the figures stay.
            expect(rows(page, "Pages in browsers").first).to_be_attached()
            expect(page.get_by_text("pages rendered", exact=False)).to_be_visible()
            look(page, f"{screenshots}/browsers-{screen}.png", "Rendered last", options, faults, axe)
            page.goto(served.of_job(f"uri?uri={seed}", job=JOB))
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
    faults += [f"{heading}: {fault}" for fault in accessible(page, axe)]
