"""The daemon is restarted while the console is open. The console shows that, reconnects by itself, and keeps all input."""

import re

from playwright.sync_api import expect

import daemon
from parts import tile


def run(browser, served, screenshots, seed, **_):
    faults = []
    away = [r"ERR_CONNECTION_REFUSED", r"ERR_INCOMPLETE_CHUNKED_ENCODING", r"ERR_CONNECTION_RESET", r"ERR_EMPTY_RESPONSE", r"status of 401"]
    with daemon.open_page(browser, faults, expects=away, viewport={"width": 1280, "height": 900}) as page:
        served.sign_in(page)
        page.goto(served.job_address())
        expect(page.locator(".link-state")).to_have_text("Live")
        other = page.context.new_page()
        other.goto(served.address + "#/new")
        other.get_by_label("Name", exact=True).fill("half-written")
        other.get_by_label("Seeds", exact=True).fill(seed)

        served.stop()
        expect(page.locator(".away")).to_contain_text("does not answer")
        page.screenshot(path=f"{screenshots}/away.png")
        other.get_by_role("button", name="Create job").click()
        expect(other.locator("form .form-error:visible")).to_contain_text("cannot be reached")
        expect(other.get_by_label("Name", exact=True)).to_have_value("half-written")
        page.get_by_role("button", name="Try now").click()
        expect(page.locator(".away")).to_be_visible()

        served.start()
        page.bring_to_front()
        # Sessions end with the daemon. After signing in again, the user is on the same page.
        sign_in_again(page, served)
        expect(page.locator(".link-state")).to_have_text("Live")
        expect(page.locator(".away")).to_be_hidden()
        # The crawl continued meanwhile, and the new daemon has found it.
        expect(page.locator(".head .badge").first).to_have_text("running")
        before = tile(page, "Revisits").inner_text()
        expect(tile(page, "Revisits")).not_to_have_text(before)
        other.bring_to_front()
        expect(other.get_by_label("Seeds", exact=True)).to_have_value(seed)
        other.get_by_label("Start", exact=True).select_option("later")
        other.get_by_label("Contact URL").fill("https://crawler.harvest.library/about")
        other.get_by_role("button", name="Create job").click()
        expect(other.get_by_role("heading", name=re.compile("half-written"), level=1)).to_be_visible()
    return faults


def sign_in_again(page, served):
    dialog = page.get_by_role("dialog", name="Sign in to Opilio")
    # The console reconnects by itself after at most half a minute. The daemon then asks for a new session.
    dialog.get_by_label("Token").fill(served.token)
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)
