"""Changes a running job with the keyboard only: adds and removes an override for one host, opens a missing page, replaces a plugin.

Every step is checked in light, in dark and 390 pixels wide, with axe. So are the steps of profiles.py, which creates a profile with
the keyboard, and of store.py, which starts a job, packs it and finds it in S3.
"""

import re

from playwright.sync_api import expect

import daemon
from keyboard import tab_to
from looks import check_screens
from parts import fact, rows

HOST = "news.harvest.localhost"
SETTING = 'politeness.min-delay = "450ms"'


def run(browser, served, seed, axe, screenshots, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light", "reduced_motion": "reduce"}
    with daemon.open_page(browser, faults, expects=["status of 40[13]"], **options) as page:

        def look(step):
            faults.extend(check_screens(page, axe, f"{screenshots}/journey-{step}"))

        served.sign_in(page)
        page.goto(served.job_address())
        expect(page.get_by_role("heading", name=daemon.JOB, level=1)).to_be_visible()
        override(page, look)
        missing(page, seed, look)
        replace(page, look)
    return faults


def go(page, key, title):
    """Opens a page of the job with `g` and its key."""
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("g")
    page.keyboard.press(key)
    expect(page.get_by_role("heading", name=title, level=1)).to_be_visible()


def override(page, look):
    """Previews, adds and removes an override for one host."""
    keys, dialog = page.keyboard, page.get_by_role("dialog")
    listed = rows(page, "Overrides").filter(has_text="450ms")
    go(page, "v", "Overrides")
    tab_to(page, page.get_by_label("Settings, one per line as in a profile"))
    keys.type(SETTING)
    tab_to(page, page.get_by_label("Hosts"))
    keys.type(HOST)
    tab_to(page, page.get_by_role("button", name="Preview …"))
    keys.press("Enter")
    expect(dialog).to_contain_text("450ms")
    look("override-preview")
    tab_to(page, dialog.get_by_label("Reason"))
    keys.type("with the keys alone")
    keys.press("Enter")
    expect(dialog).to_have_count(0)
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text(HOST)
    look("override")
    tab_to(page, listed.get_by_role("button", name="Remove"))
    keys.press("Enter")
    expect(dialog).to_be_visible()
    look("override-removal")
    tab_to(page, dialog.get_by_role("button", name="Remove", exact=True))
    keys.press("Enter")
    expect(dialog).to_have_count(0)
    expect(listed).to_have_count(0)


def missing(page, seed, look):
    """Opens a page that is not in the archive; the console shows the reason."""
    go(page, "u", "URIs")
    page.keyboard.press("/")
    expect(page.get_by_label("One URI")).to_be_focused()
    page.keyboard.type(f"{seed}private/secret.html")
    page.keyboard.press("Enter")
    expect(page.get_by_text("forbidden by robots.txt").first).to_be_visible()
    expect(page.get_by_text("Loading …")).to_have_count(0)
    look("missing")


def replace(page, look):
    """Replaces the component of a plugin of the running job, and checks the page of the plugin."""
    dialog = page.get_by_role("dialog")
    go(page, "p", "Plugins")
    # This web has no Flash, so the same links are found.
    before, other = component_of(page, "swf"), component_of(page, "css")
    assert before != other, before
    tab_to(page, page.get_by_role("button", name="Replace swf", exact=True))
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Component", exact=True)).to_be_focused()
    look("replacement")
    page.keyboard.type("builtin:css")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    tab_to(page, page.get_by_role("rowheader").get_by_role("link", name="swf", exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="swf", level=1, exact=True)).to_be_visible()
    expect(fact(page, "Component").locator(".mono")).to_have_attribute("title", other)
    look("replaced")


def component_of(page, plugin):
    """The SHA-256 of a plugin's component."""
    row = rows(page, "Plugins").filter(has=page.locator("th", has_text=re.compile(f"^{plugin}$")))
    return row.locator(".hint.mono").get_attribute("title")
