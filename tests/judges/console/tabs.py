"""Opens more tabs than a browser opens connections to a server. Each shows its page, and the visible one is live."""

from playwright.sync_api import expect

import daemon

# Browsers open six connections to a server, so this many tabs would need more.
TABS = 8

# Playwright's tabs are all visible. This script sets whether a tab seems to be in front.
SET_VISIBLE = "isShown => { Object.defineProperty(document, 'hidden', { value: !isShown, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"


def run(browser, served, **_):
    faults = []
    with daemon.open_page(browser, faults, expects=["status of 401"]) as first:
        served.sign_in(first)
        tabs = [first]
        for _ in range(TABS):
            tabs[-1].evaluate(SET_VISIBLE, False)
            tab = first.context.new_page()
            tab.set_default_timeout(180000)
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.goto(served.job_address(), wait_until="commit")
            expect(tab.locator("dl.tiles")).to_be_visible()
            expect(tab.get_by_text("Live", exact=True)).to_be_visible()
            tabs.append(tab)
        tabs[-1].evaluate(SET_VISIBLE, False)
        tabs[1].evaluate(SET_VISIBLE, True)
        expect(tabs[1].get_by_text("Live", exact=True)).to_be_visible()
    return faults
