"""Checks every page in light and dark colours and on a phone: axe finds no errors, and nothing is wider than the window."""

import json

from playwright.sync_api import expect

import daemon

PAGES = {
    "jobs": ("Jobs", "#/"),
    "new-job": ("New job", "#/new"),
    "profiles": ("Profiles", "#/profiles"),
    "named-profile": ("museum", "#/profiles/museum"),
    "new-profile": ("New profile", "#/new-profile"),
    "compare-profiles": ("Compare profiles", "#/compare-profiles?profile=museum&version=1&with=museum"),
    "daemon": ("Daemon", "#/daemon"),
    "overview": ("news", ""),
    "frontier": ("Frontier", "frontier"),
    "queue": (None, "queue?name={queue}"),
    "uris": ("URIs", "uris"),
    "uri": (None, "uri?uri={seed}"),
    "seeds": ("Seeds", "seeds"),
    "plugins": ("Plugins", "plugins"),
    "plugin": ("adaptive", "plugin?name=adaptive"),
    "hosts": ("Hosts", "hosts"),
    "crawl-log": ("Crawl log", "crawl-log"),
    "compare": ("Compare", "compare"),
    "logs": ("Logs", "logs"),
    "reports": ("Reports", "reports"),
    "files": ("Files", "files"),
    "settings": ("Settings", "settings"),
    "overrides": ("Overrides", "overrides"),
    "profile": ("Profile", "profile"),
    "alerts": ("Alerts", "alerts"),
    "history": ("History", "history"),
}
SCREENS = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}
# Screens to which an open page is switched in this order: width, height, colours. The page keeps the last one.
STEPS = {"dark": (1280, 900, "dark"), "phone": (390, 844, "light"), "light": (1280, 900, "light")}


def run(browser, served, seed, axe, screenshots, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    for screen, options in SCREENS.items():
        with daemon.open_page(browser, faults, expects=["status of 40[13]"], reduced_motion="reduce", **options) as page:
            page.goto(served.address)
            expect(page.get_by_role("dialog")).to_be_visible()
            faults += [f"sign-in, {screen}: {fault}" for fault in accessibility_faults(page, axe)]
            served.sign_in(page)
            queue = None
            for name, (title, path) in PAGES.items():
                address = served.address + path if path.startswith("#") else served.job_address(path.format(queue=queue, seed=seed))
                page.goto(address)
                heading = page.get_by_role("heading", level=1, name=title, exact=True) if title else page.get_by_role("heading", level=1)
                expect(heading).to_be_visible()
                wait_for_content(page, name)
                if name == "frontier":
                    queue = page.locator("tbody th a").first.inner_text()
                page.screenshot(path=f"{screenshots}/{name}-{screen}.png", full_page=screen != "phone")
                if name in ("new-job", "named-profile"):
                    # Opens every section of the form, and the settings of every plugin.
                    page.evaluate("document.querySelectorAll('main details').forEach((one) => ((one.name = ''), (one.open = true)))")
                    page.screenshot(path=f"{screenshots}/{name}-open-{screen}.png", full_page=True)
                width = page.evaluate("document.documentElement.scrollWidth")
                if width > options["viewport"]["width"]:
                    faults.append(f"{name}, {screen}: {width} pixels wide")
                faults += [f"{name}, {screen}: {fault}" for fault in accessibility_faults(page, axe)]
            page.goto(served.job_address())
            page.get_by_role("button", name="Clone").click()
            expect(page.get_by_role("dialog")).to_be_visible()
            page.screenshot(path=f"{screenshots}/dialogue-{screen}.png")
            faults += [f"dialogue, {screen}: {fault}" for fault in accessibility_faults(page, axe)]
    return faults


def check_screens(page, axe, screenshot):
    """Checks a page in light, in dark and 390 pixels wide. Returns its errors. `screenshot`: beginning of the pictures' names."""
    faults = []
    for screen, (width, height, scheme) in STEPS.items():
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.screenshot(path=f"{screenshot}-{screen}.png")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            faults.append(f"{screenshot}-{screen}.png: {wide} pixels wide")
        faults += [f"{screenshot}-{screen}.png: {fault}" for fault in accessibility_faults(page, axe)]
    return faults


def wait_for_content(page, name):
    """Waits until the page has loaded its contents."""
    expect(page.get_by_text("Loading …")).to_have_count(0)
    if name == "overview":
        # A line of zeros has no height, so Playwright would take it for hidden.
        expect(page.locator("figure", has_text="Queues by state").locator("path.line").first).to_be_attached()


def accessibility_faults(page, axe):
    # `evaluate` uses the debugger: the console's content security policy allows no other scripts. Once for each document.
    if page.evaluate("typeof window.axe") == "undefined":
        page.evaluate(axe)
    # If a page is scrolled, the bars at the top cover parts of it, and axe would report their contrast.
    page.evaluate("window.scrollTo(0, 0)")
    result = page.evaluate("axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })")
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: "
        + "; ".join(json.dumps(node["target"]) for node in violation["nodes"][:3])
        for violation in result["violations"]
    ]
