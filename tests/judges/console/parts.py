"""Parts of the console's pages, found by their visible names."""

import re

from playwright.sync_api import expect


def confirm(page, button):
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=button, exact=True).click()
    expect(dialog).to_have_count(0)


def notice(page, text):
    expect(page.locator(".notice.done", has_text=re.compile(text)).last).to_be_visible()


def fact(page, name):
    """The value beside a name in a list of facts."""
    return page.locator("dl.facts > div", has=page.locator("dt", has_text=re.compile(f"^{re.escape(name)}$"))).locator("dd").first


def tile(page, name):
    return page.locator("dl.tiles > div", has=page.locator("dt", has_text=re.compile(f"^{re.escape(name)}$"))).locator("dd > span")


def rows(page, caption):
    return page.get_by_role("region", name=caption, exact=True).locator("tbody tr")
