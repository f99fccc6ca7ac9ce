"""More tabs than a browser opens connections to a server: each shows its page, and moves while it is looked at."""

from playwright.sync_api import expect

import daemon

# Browsers open six connections to a server.
TABS = 8

# Playwright's tabs are all in view, so a tab is told that another one has come to the front.
SHOWN = "isShown => { Object.defineProperty(document, 'hidden', { value: !isShown, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }"


def run(browser, served, **_):
    faults = []
    with daemon.opened(browser, faults, expects=["status of 401"]) as first:
        served.sign_in(first)
        tabs = [first]
        for _ in range(TABS):
            tabs[-1].evaluate(SHOWN, False)
            tab = first.context.new_page()
            tab.set_default_timeout(180000)
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.goto(served.of_job(), wait_until="commit")
            expect(tab.locator("dl.tiles")).to_be_visible()
            expect(tab.get_by_text("Live", exact=True)).to_be_visible()
            tabs.append(tab)
        tabs[-1].evaluate(SHOWN, False)
        tabs[1].evaluate(SHOWN, True)
        expect(tabs[1].get_by_text("Live", exact=True)).to_be_visible()
    return faults
