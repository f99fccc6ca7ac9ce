"""Named profiles: created, edited as form and as TOML, versioned, compared, copied and deleted; and a job with its own settings."""

import re

from playwright.sync_api import expect

import daemon
from keyboard import tab_to
from looks import check_screens
from parts import confirm, notice, rows
from tabs import SET_VISIBLE

NAME = "museum"


def run(browser, served, seed, axe, screenshots, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    expects = [r"status of (401|403|409|412|422)"]
    with daemon.open_page(browser, faults, expects=expects, viewport={"width": 1400, "height": 1000}) as page:
        served.sign_in(page)
        make(page, served)
        edited_stack(page)
        plugins(page, screenshots)
        versions(page, served, screenshots)
        compare(page, served, screenshots)
        remove(page, served)
        job(page, served, seed, screenshots)
    with daemon.open_page(browser, faults, expects=expects, viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as page:

        def look(step):
            faults.extend(check_screens(page, axe, f"{screenshots}/profile-{step}"))

        served.sign_in(page, token=served.tokens["operator"])
        admin_settings(page, served)
        by_keyboard(page, served, look)
    return faults


def text_of(page):
    return page.get_by_role("textbox", name="Profile (TOML)")


def make(page, served):
    """A change in the form appears in the text, and the other way round. Comments are kept."""
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Profiles", exact=True).click()
    expect(rows(page, "Profiles").filter(has_text="loopback")).to_contain_text("1")
    page.get_by_role("link", name="New profile").click()
    page.get_by_label("Name", exact=True).fill(NAME)
    text = text_of(page)
    expect(page.get_by_role("heading", name="Form")).to_be_visible()
    text.fill('# As the museum asked\nextends = "snapshot"\nworkers = 4 # few\n')
    workers = page.get_by_label("workers", exact=True)
    expect(workers).to_have_value("4")
    workers.fill("6")
    workers.press("Enter")
    expect(text).to_have_value('# As the museum asked\nextends = "snapshot"\nworkers = 6 # few\n')
    page.get_by_label("Find a setting").fill("politeness.min-delay")
    delay = page.get_by_role("group", name="min-delay", exact=True)
    expect(delay.get_by_role("textbox")).to_have_attribute("placeholder", "2")
    delay.get_by_role("textbox").fill("5")
    delay.get_by_role("combobox").select_option("minutes")
    expect(text).to_have_value(re.compile(r'\[politeness\]\nmin-delay = "5m"'))
    # An error is shown at the field and at the line.
    delay.get_by_role("textbox").fill("soon")
    delay.get_by_role("textbox").press("Enter")
    expect(delay.locator(".form-error")).to_contain_text("duration")
    expect(page.locator(".editor .gutter .bad")).to_have_text("✕ 6")
    expect(page.locator(".faults li button").first).to_contain_text("line 6:")
    delay.get_by_role("textbox").fill("5s")
    delay.get_by_role("textbox").press("Enter")
    expect(page.get_by_text("No errors.")).to_be_visible()
    delay.get_by_role("button", name="Use default: min-delay").click()
    expect(text).not_to_have_value(re.compile("politeness"))
    page.get_by_label("Find a setting").fill("")
    # A draft survives a reload.
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value(NAME)
    expect(text).to_have_value(re.compile("workers = 6 # few"))
    page.get_by_label("Reason, for the history").fill("asked for")
    page.get_by_role("button", name="Create profile").click()
    expect(page.get_by_role("heading", name=NAME, level=1)).to_be_visible()
    expect(page.locator(".head .badge")).to_have_text("version 1")


def edited_stack(page):
    """The text edits a stack and has an error elsewhere. The form still knows the stack's plugins, and its buttons lose none."""
    text = text_of(page)
    text.fill('extends = "snapshot"\nworkers = "many"\n\n[stacks]\nextract = { after = ["mine"] }\n\n[plugins.mine]\ncomponent = "builtin:html"\n')
    expect(page.locator(".faults li.bad-text")).to_have_count(1)
    page.locator("summary", has=page.get_by_text("Plugins", exact=True)).click()
    stage = page.get_by_role("group", name="Stage extract")
    expect(stage.get_by_role("listitem").last).to_contain_text("mine")
    stage.get_by_role("button", name="Remove: swf in extract").click()
    expect(text).to_have_value(re.compile(r'extract = \[[^\]]*"mine",?\s*\]'))
    expect(text).not_to_have_value(re.compile('"swf"'))
    # If the edit itself has an error, the plugins of the stage are unknown.
    text.fill('[stacks]\nextract = { aftr = ["mine"] }\n')
    add = page.get_by_label("Add to extract", exact=True)
    expect(add).to_be_disabled()
    expect(page.locator(".stage", has=add)).to_contain_text("not known")
    page.reload()
    expect(text).to_have_value(re.compile("^# As the museum asked"))


def plugins(page, screenshots):
    """Stacks and settings of plugins, changed with the keyboard."""
    keys, text = page.keyboard, text_of(page)
    summary = page.locator("summary", has=page.get_by_text("Plugins", exact=True))
    summary.focus()
    keys.press("Enter")
    move = page.get_by_role("button", name="Move down: hops in scope")
    move.focus()
    keys.press("Enter")
    expect(text).to_have_value(re.compile(r'"transclusion",\s+"hops"'))
    # The focus stays with the plugin.
    expect(move).to_be_focused()
    keys.press("Enter")
    expect(text).to_have_value(re.compile(r'"path-depth",\s+"hops"'))
    page.get_by_role("button", name="Use default: scope").click()
    expect(text).not_to_have_value(re.compile("stacks"))
    stage = page.get_by_role("group", name="Stage pre-fetch")
    stage.get_by_role("combobox").select_option("ip-set")
    stage.get_by_role("button", name="Add to pre-fetch").press("Enter")
    expect(text).to_have_value(re.compile(r'\[stacks\]\npre-fetch = \["ip-set"\]'))
    # Only plugins that fit the stage are offered.
    expect(stage.get_by_role("combobox").get_by_role("option", name="html", exact=True)).to_have_count(0)
    settings = page.locator("details.plugin-settings", has=page.locator("summary", has_text="ip-set"))
    settings.locator("summary").press("Enter")
    settings.get_by_label("addresses", exact=True).fill("192.0.2.0/24\n198.51.100.7")
    settings.get_by_label("then", exact=True).focus()
    expect(text).to_have_value(re.compile(r'\[plugins\.ip-set\]\ncomponent = "builtin:ip-set"\n\n\[plugins\.ip-set\.settings\]\naddresses = \["192\.0\.2\.0/24", "198\.51\.100\.7"\]'))
    # The button to remove the plugin's table appears with the table.
    expect(settings.get_by_role("button", name="Remove the table of ip-set")).to_be_visible()
    settings.scroll_into_view_if_needed()
    page.screenshot(path=f"{screenshots}/profile-plugins.png")
    # A further plugin from a shipped component.
    page.get_by_label("Name of a further plugin").fill("no-films")
    page.get_by_label("Shipped plugin that it uses").select_option("file-type")
    page.get_by_role("button", name="Add plugin").click()
    films = page.locator("details.plugin-settings", has=page.locator("summary", has_text="no-films"))
    films.get_by_role("group", name="kinds").get_by_label("video").check()
    expect(text).to_have_value(re.compile(r'kinds = \["video"\]'))
    scope = page.get_by_role("group", name="Stage scope")
    scope.get_by_role("combobox").select_option("no-films")
    scope.get_by_role("button", name="Add to scope").click()
    expect(page.get_by_text("No errors.")).to_be_visible()


def versions(page, served, screenshots):
    page.get_by_label("Reason, for the history").fill("no films")
    page.get_by_role("button", name="Save", exact=True).click()
    notice(page, f"version 2 of {NAME} was saved")
    listed = rows(page, "Versions")
    expect(listed).to_have_count(2)
    expect(listed.first).to_contain_text("no films")
    expect(listed.first).to_contain_text("lena")
    page.get_by_role("button", name="Changes of version 2").click()
    shown = page.get_by_role("region", name=f"Difference from {NAME}@1 to {NAME}@2")
    expect(shown.locator(".added").first).to_be_visible()
    expect(shown).to_contain_text('+kinds = ["video"]')
    shown.scroll_into_view_if_needed()
    page.screenshot(path=f"{screenshots}/profile-versions.png")
    # Another user saves meanwhile. That version is not overwritten.
    text = text_of(page)
    text.fill(text.input_value() + "# mine\n")
    now = served.ask("GET", f"profiles/{NAME}")
    served.ask("PUT", f"profiles/{NAME}", {"toml": now["toml"] + "# theirs\n"}, {"if-match": f'"{now["tag"]}"'})
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("form .form-error:visible")).to_contain_text("it now has version 3, by lena")
    page.reload()
    expect(text).to_have_value(re.compile("# theirs"))
    page.get_by_role("button", name="Restore …: version 2").click()
    expect(text).not_to_have_value(re.compile("# theirs"))
    page.get_by_role("button", name="Save", exact=True).click()
    notice(page, "version 4")


def compare(page, served, screenshots):
    page.get_by_role("button", name="Copy", exact=True).click()
    page.get_by_label("Name of the new profile").fill(f"{NAME}-copy")
    confirm(page, "Copy")
    expect(page.get_by_role("heading", name=f"{NAME}-copy", level=1)).to_be_visible()
    expect(rows(page, "Versions").first).to_contain_text(f"copied from {NAME}@4")
    page.get_by_role("link", name="Compare").click()
    page.get_by_label("To profile").select_option("snapshot")
    expect(page.get_by_role("region", name=re.compile("Difference from .* to snapshot"))).to_contain_text("+strategy = \"snapshot\"")
    page.get_by_label("To profile").select_option(NAME)
    expect(page.get_by_text(f"{NAME}-copy@1 and {NAME}@4 are equal.")).to_be_visible()
    page.get_by_label("To version").select_option("version 3")
    expect(page.get_by_role("region", name=re.compile("Difference"))).to_contain_text("+# theirs")
    # The address of the page has the comparison, so a reload shows it again.
    page.reload()
    expect(page.get_by_label("To version")).to_have_value("3")
    page.screenshot(path=f"{screenshots}/profile-compare.png")


def remove(page, served):
    page.goto(served.address + "#/profiles")
    page.get_by_role("button", name=f"Delete {NAME}-copy").click()
    confirm(page, "Delete")
    notice(page, f"profile {NAME}-copy was deleted")
    expect(page.get_by_role("link", name=f"{NAME}-copy", exact=True)).to_have_count(0)


def job(page, served, seed, screenshots):
    """The settings that most jobs change are above the form. They change the job, not the named profile."""
    page.goto(served.address + f"#/new?profile={NAME}")
    chosen_twice(page, served)
    page.get_by_label("Name", exact=True).fill("small")
    page.get_by_label("Contact URL").fill("https://crawler.harvest.library/about")
    page.get_by_label("Seeds", exact=True).fill(seed)
    page.get_by_label("Scope", exact=True).select_option("host")
    common = page.get_by_role("region", name="Scope, limits and schedule")
    for label, value in [("Depth", "3"), ("Page limit", "500")]:
        common.get_by_label(label, exact=True).fill(value)
        common.get_by_label(label, exact=True).press("Enter")
    hour = common.get_by_role("group", name="Time limit")
    hour.get_by_role("textbox").fill("1")
    hour.get_by_role("combobox").select_option("hours")
    common.get_by_label("Exclusions", exact=True).fill(r"\.pdf$")
    common.get_by_label("Exclusions", exact=True).blur()
    expect(page.get_by_text("Changed for this job")).to_be_visible()
    page.get_by_label("Start", exact=True).select_option("at a set time")
    page.get_by_label("Time of the start").fill("2099-01-01T03:00")
    page.screenshot(path=f"{screenshots}/new-job-settings.png", full_page=True)
    page.get_by_role("button", name="Create job").click()
    expect(page.get_by_role("heading", name="small", level=1)).to_be_visible()
    expect(page.get_by_text("the job starts at 2099-01-01")).to_be_visible()
    page.goto(served.job_address("profile", "small"))
    text = text_of(page)
    for line in [r"scope = \[\s*\"host\"", "max = 3", "documents = 500", 'time = "1h"', r"patterns = \['\\\.pdf\$'\]"]:
        expect(text).to_have_value(re.compile(line))
    expect(page.get_by_text(f"Created with {NAME} version 4.")).to_be_visible()
    page.get_by_text("Difference to the newest version").click()
    expect(page.get_by_role("region", name=re.compile("Difference"))).to_contain_text("-documents = 500")
    page.screenshot(path=f"{screenshots}/job-profile.png")
    stop(page, served)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_label("Type the name").fill("small")
    page.get_by_role("dialog").get_by_label("Delete archive").check()
    confirm(page, "Delete")


def chosen_twice(page, served):
    """Two profiles are chosen in a row, and the first one's text arrives last. The text of the second one stays."""
    # The text is in a folded section, which closes when a profile is chosen.
    text, profile = page.get_by_label("Profile (TOML)", exact=True), page.get_by_label("Profile", exact=True)
    expect(text).to_have_value(re.compile("museum asked"))
    loopback_path = re.compile("/api/v1/profiles/loopback$")
    requests = []
    page.route(loopback_path, lambda route: requests.append(route))
    with page.expect_request(loopback_path):
        profile.select_option("loopback")
    profile.select_option("snapshot")
    expect(text).not_to_have_value(re.compile("museum asked"))
    requests[0].fulfill(json=served.ask("GET", "profiles/loopback"))
    finish_requests(page)
    expect(text).not_to_have_value(re.compile('name = "news"'))
    page.unroute(loopback_path)
    profile.select_option(NAME)
    expect(text).to_have_value(re.compile("museum asked"))


def stop(page, served):
    """Stops a job that waits for its start. A late answer from before the stop must not be shown: no later event corrects it."""
    page.goto(served.job_address("", "small"))
    badge = page.locator(".head .badge").first
    expect(badge).to_have_text("waiting")
    expect(page.locator(".link-state")).to_have_text("Live")
    before = served.ask("GET", "jobs/small")
    job_path = re.compile("/api/v1/jobs/small$")
    requests = []
    page.route(job_path, lambda route: requests.append(route))
    # A tab that becomes visible requests the state, and then gets it as an event as well.
    with page.expect_request(job_path):
        page.evaluate(SET_VISIBLE, False)
        page.evaluate(SET_VISIBLE, True)
    page.get_by_role("button", name="Stop").click()
    confirm(page, "Stop")
    expect(badge).to_have_text("new")
    requests[0].fulfill(json=before)
    finish_requests(page)
    expect(badge).to_have_text("new")
    for route in requests[1:]:
        route.continue_()
    page.unroute(job_path)


def finish_requests(page):
    """Sends one more request from the page and waits for its answer, so that earlier answers have been handled."""
    page.evaluate("() => fetch('api/v1/daemon').then((answer) => answer.text())")


def admin_settings(page, served):
    """An operator can view and use a profile with settings that only the machine's administrator may write, without errors."""
    before = len(refusals(served))
    page.goto(served.address + "#/profiles/loopback")
    expect(page.get_by_text(re.compile("^No errors|warning"))).to_be_visible()
    expect(page.locator(".faults li.bad-text")).to_have_count(0)
    page.goto(served.job_address("profile"))
    expect(text_of(page)).to_be_visible()
    expect(page.locator(".faults li")).to_have_count(0)
    page.goto(served.address + "#/new?profile=loopback")
    expect(page.get_by_role("heading", name="New job", level=1)).to_be_visible()
    expect(page.locator(".faults li.bad-text")).to_have_count(0)
    if len(refusals(served)) != before:
        raise AssertionError(f"viewing a profile added a refusal to the audit log: {refusals(served)[0]}")


def refusals(served):
    entries = served.ask("GET", "audit?limit=1000")["entries"]
    return [entry for entry in entries if entry["status"] == 403 and entry["user"] == "omar"]


def by_keyboard(page, served, look):
    """Creates a profile with the keyboard. The form is checked in light, in dark and 390 pixels wide."""
    keys = page.keyboard
    page.goto(served.address)
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    keys.press("g")
    keys.press("m")
    expect(page.get_by_role("heading", name="Profiles", level=1)).to_be_visible()
    tab_to(page, page.get_by_role("link", name="New profile"))
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Form")).to_be_visible()
    page.evaluate("document.activeElement.blur()")
    keys.press("/")
    expect(page.get_by_label("Find a setting")).to_be_focused()
    keys.type("politeness.max-delay")
    field = page.get_by_role("group", name="max-delay", exact=True).get_by_role("textbox")
    tab_to(page, field)
    keys.type("9s")
    keys.press("Enter")
    expect(text_of(page)).to_have_value(re.compile('max-delay = "9s"'))
    tab_to(page, page.get_by_label("Name", exact=True))
    keys.type("museum-keys")
    look("by-keyboard")
    tab_to(page, page.get_by_role("button", name="Create profile"))
    keys.press("Enter")
    expect(page.get_by_role("heading", name="museum-keys", level=1)).to_be_visible()
    # Operators cannot delete profiles.
    expect(page.get_by_role("button", name="Delete", exact=True)).to_have_count(0)
    served.ask("DELETE", "profiles/museum-keys", headers={"if-match": "*"})
