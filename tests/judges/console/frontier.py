"""Uses every action on the pages of the frontier: queues, URIs, and a URI with its captures."""

import re
from urllib.parse import quote

from playwright.sync_api import expect

from daemon import JOB
from parts import confirm, fact, notice, rows


def frontier(page, served):
    page.goto(served.job_address("frontier"))
    queues = rows(page, "Queues")
    expect(queues.first).to_be_visible()
    page.get_by_label("State").select_option("frozen")
    expect(page.get_by_text("No queue is frozen.")).to_be_visible()
    page.get_by_label("State").select_option("")
    page.get_by_label("Order").select_option("size")
    expect(queues.first).to_be_visible()
    name = queues.first.locator("a").inner_text()
    # The beginning of a name opens the list at that place; a whole name opens the queue.
    page.get_by_label("Queue name").fill(name[:-2])
    page.get_by_role("button", name="Open").click()
    expect(queues.first).to_contain_text(name)
    expect(page.get_by_text(f"From {name[:-2]}.")).to_be_visible()
    page.get_by_role("button", name="From the beginning").click()
    page.get_by_role("button", name="Refresh").click()
    page.get_by_label("Queue name").fill(name)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name=name, level=1)).to_be_visible()
    expect(rows(page, re.compile("^URIs of")).first).to_be_visible()
    for act, state in [("Freeze", "frozen"), ("Retire", "retired")]:
        undo = {"Freeze": "Thaw", "Retire": "Unretire"}[act]
        page.get_by_role("button", name=act, exact=True).click()
        confirm(page, act)
        expect(fact(page, "State")).to_contain_text(state)
        page.get_by_role("button", name=undo, exact=True).click()
        confirm(page, undo)
        expect(fact(page, "State")).not_to_contain_text(state)
    page.get_by_role("button", name="Wake").click()
    notice(page, ".")
    page.get_by_role("button", name="Precedence").click()
    page.get_by_role("dialog").get_by_label("Precedence").fill("3")
    confirm(page, "Set")
    expect(fact(page, "Precedence")).to_have_text("3")
    page.goto(served.job_address("frontier"))
    page.get_by_role("button", name="Precedence floor").click()
    page.get_by_role("dialog").get_by_label("Floor").fill("200")
    confirm(page, "Set")
    page.get_by_role("button", name="Precedence floor").click()
    confirm(page, "Set")
    page.get_by_role("button", name="Wake all").click()
    confirm(page, "Wake all")
    notice(page, "0 of [1-9][0-9]* queues had too long a delay")


def cancel_fetch(page, served, seed):
    """A URI in process: its server holds the answer back. Its precedence cannot be changed, but the fetch can be cancelled."""
    uri = seed.replace("www.", "held.") + "page.html"
    served.ask("POST", f"jobs/{JOB}/seeds", {"seeds": [uri]})
    page.goto(served.job_address(f"uri?uri={quote(uri, safe='')}"))
    # The page is updated without a reload.
    cancel = page.get_by_role("button", name="Cancel fetch", exact=True)
    expect(cancel).to_be_visible()
    expect(page.get_by_text("It is being fetched.")).to_be_visible()
    page.get_by_role("button", name="Precedence").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Precedence").fill("1")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.locator(".form-error")).to_contain_text("is being fetched")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    cancel.click()
    confirm(page, "Cancel fetch")
    expect(cancel).to_have_count(0)
    page.goto(served.job_address("logs?grep=-7000&file=crawl.log"))
    expect(page.get_by_role("log")).to_contain_text(uri)


def uris(page, served, seed, screenshots):
    # The style sheet and the image of the capture that is shown below must be fetched first.
    for part in [seed + "style.css", seed.replace("www.", "images.") + "press.png"]:
        page.goto(served.job_address(f"uri?uri={quote(part, safe='')}"))
        expect(fact(page, "Last status")).to_have_text("200")
    page.goto(served.job_address(f"uri?uri={quote(seed.replace('www.', 'news.'), safe='')}"))
    expect(fact(page, "Visits")).to_contain_text(re.compile("([2-9]|[1-9][0-9]+) of them new"))
    # Nothing is fetched while the job is paused, so the pages do not change during the checks.
    page.goto(served.job_address())
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".head .badge").first).to_have_text("paused")
    page.goto(served.job_address("uris"))
    listed = rows(page, "URIs")
    expect(listed.first).to_be_visible()
    page.get_by_label("Regular expression").fill("^http")
    page.get_by_role("button", name="List").click()
    expect(listed.first).to_contain_text("http")
    page.get_by_role("button", name="Count").click()
    expect(page.get_by_text(re.compile(r"[1-9][0-9,]* matching URIs, "))).to_be_visible()
    # Lists by outcome, opened from a bar of a chart and from a line of a log.
    page.goto(served.job_address())
    page.locator("figure", has_text="Media types").get_by_role("link", name="text/css").click()
    expect(page.get_by_label("Media type", exact=True)).to_have_value("text/css")
    expect(listed.filter(has_text="style.css").first).to_be_visible()
    page.get_by_label("State", exact=True).select_option("failed")
    page.get_by_role("button", name="List").click()
    expect(page.get_by_text("No matching URIs.")).to_be_visible()
    page.goto(served.job_address("logs?grep=style.css"))
    lines = page.get_by_role("log")
    lines.get_by_role("link", name="200", exact=True).first.click()
    expect(page.get_by_label("Status", exact=True)).to_have_value("200")
    expect(listed.first).to_contain_text("200")
    page.get_by_label("One URI").fill(seed)
    page.get_by_role("button", name="Open", exact=True).click()
    expect(page.get_by_role("heading", name=seed, level=1)).to_be_visible()
    visits = rows(page, "Visits")
    expect(visits.first).to_contain_text("200")
    # The first visit has a digest and a wait.
    expect(visits.last.locator("code")).to_have_text(re.compile("^[A-Z2-7]{8}$"))
    expect(visits.last.locator("td").nth(4)).to_have_text(re.compile("[0-9]"))
    expect(page.get_by_text("It is in scope.")).to_be_visible()
    # The page shows the plugins that were called, and the current answers of the plugins.
    expect(fact(page, "Links extracted by")).to_contain_text(re.compile(r"html \d+\.\d+\.\d+"))
    expect(rows(page, "Visits in the log").first).to_contain_text("adaptive")
    why = page.get_by_role("region", name="Scope, filters, waits and settings", exact=True)
    expect(why.get_by_text("If its next visit finds it unchanged")).to_be_visible()
    expect(why.locator("li.good", has_text="adaptive")).to_have_count(2)
    expect(why.get_by_text("robots.txt is not fetched here")).to_be_visible()
    why.get_by_text("Plugins of each stage").click()
    expect(fact(page, "wait")).to_contain_text("adaptive")
    # Expert settings are shown on request.
    why.get_by_text("All settings of this URI").click()
    settings = rows(page, "Settings of this URI")
    expect(settings.filter(has_text="politeness.min-delay")).to_have_count(1)
    expect(settings.filter(has_text="fetch.keep-alive")).to_have_count(0)
    why.get_by_label("Include expert settings").check()
    expect(settings.filter(has_text="fetch.keep-alive")).to_have_count(1)
    page.get_by_role("button", name="Show the capture").click()
    frame = page.frame_locator("iframe")
    expect(frame.locator("h1")).to_have_text("The Daily Harvest")
    # The capture has its style sheet, the image in the style sheet, and an image of another host.
    background = frame.locator("body").evaluate("body => getComputedStyle(body).backgroundImage")
    if not background.startswith('url("data:image/svg'):
        raise AssertionError(f"the capture has the background {background[:100]}")
    expect(frame.get_by_alt_text("The press")).to_have_js_property("complete", True)
    if frame.get_by_alt_text("The press").evaluate("image => image.naturalWidth") == 0:
        raise AssertionError("the capture does not show its image")
    # Scripts and links are removed.
    expect(frame.locator("script, a[href]")).to_have_count(0)
    page.screenshot(path=f"{screenshots}/uri-capture.png", full_page=True)
    page.get_by_role("button", name="Force").click()
    confirm(page, "Force")
    page.get_by_role("button", name="Precedence").click()
    page.get_by_role("dialog").get_by_label("Precedence").fill("1")
    confirm(page, "Set")
    expect(fact(page, "Precedence")).to_have_text("1")
    # Earlier versions of a changing page can be shown.
    page.goto(served.job_address(f"uri?uri={quote(seed.replace('www.', 'news.'), safe='')}"))
    page.get_by_role("button", name="Show the capture").click()
    body = page.frame_locator("iframe").locator("body")
    expect(body).not_to_contain_text("Edition 1.")
    version = page.get_by_label("Version")
    expect(version).to_be_visible()
    version.select_option(index=version.locator("option").count() - 1)
    expect(body).to_contain_text("Edition 1.")
    with page.expect_popup() as other:
        page.get_by_role("link", name="Received content").click()
    expect(other.value.locator("body")).to_contain_text("Edition 1.")
    other.value.close()
    # A URI is deleted and forgotten.
    page.goto(served.job_address("uris"))
    page.get_by_label("Regular expression").fill("(png|css|ico)$")
    page.get_by_role("button", name="List").click()
    expect(listed.first).to_contain_text(re.compile("png|css|ico"))
    listed.first.locator("a").first.click()
    page.get_by_role("button", name="Delete", exact=True).click()
    confirm(page, "Delete")
    expect(fact(page, "State")).to_contain_text("deleted")
    page.get_by_role("button", name="Forget", exact=True).click()
    confirm(page, "Forget")
    expect(page.locator("dt", has_text="Last status")).to_have_count(0)
    page.goto(served.job_address("uris"))
    # Without a condition no URI is selected.
    page.get_by_role("button", name="Forget …").click()
    expect(page.locator(".notice.failed")).to_contain_text("never selects")
    page.get_by_label("Regular expression").fill(r"\.png$")
    page.get_by_role("button", name="Delete …").click()
    confirm(page, "Delete")
    page.get_by_label("Regular expression").fill("/story/2")
    page.get_by_role("button", name="List").click()
    expect(listed.first).to_contain_text("/story/2")
    page.get_by_role("button", name="Forget …").click()
    confirm(page, "Forget")
    expect(page.get_by_text("No matching URIs.")).to_be_visible()
    page.goto(served.job_address())
    page.get_by_role("button", name="Resume").click()
    expect(page.locator(".head .badge").first).to_have_text("running")
