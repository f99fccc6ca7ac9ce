"""Uses every action of the console and checks its effect."""

import re

from playwright.sync_api import expect

import daemon
from daemon import JOB
from frontier import cancel_fetch, frontier, uris
from parts import confirm, fact, notice, rows, tile


def run(browser, served, seed, screenshots, **_):
    faults = []
    # The browser reports requests that fail on purpose. Their messages in the console are checked below.
    expects = [r"status of (400|401|403|404|409|422)"]
    with daemon.open_page(browser, faults, expects=expects, viewport={"width": 1280, "height": 900}) as page:
        sign_in(page, served, screenshots)
        make(page, seed, screenshots)
        overview(page, served, screenshots)
        jobs(page, served)
        frontier(page, served)
        cancel_fetch(page, served, seed)
        uris(page, served, seed, screenshots)
        seeds(page, served, seed)
        plugins(page, served)
        logs(page, served)
        reports(page, served)
        settings(page, served, screenshots)
        overrides(page, served, screenshots)
        profile(page, served)
        alerts(page, served)
        clone(page, served, screenshots)
        colours_and_keys(page, served)
        sign_out(page, served)
    return faults


def sign_in(page, served, screenshots):
    page.goto(served.address)
    dialog = page.get_by_role("dialog", name="Sign in to Opilio")
    expect(dialog.get_by_label("Token")).to_be_focused()
    page.screenshot(path=f"{screenshots}/sign-in.png")
    dialog.get_by_label("Token").fill("opilio_00000000_wrong")
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog.locator(".form-error")).to_contain_text(re.compile(r"\w"))
    dialog.get_by_label("Token").fill(served.token)
    dialog.get_by_role("button", name="Sign in").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()


def make(page, seed, screenshots):
    page.get_by_role("link", name="New job").first.click()
    page.get_by_label("Name", exact=True).fill(JOB)
    page.get_by_label("Profile", exact=True).select_option(label="own text")
    editor = page.get_by_role("textbox", name="Profile (TOML)")
    # An error is shown at its line.
    editor.fill(daemon.PROFILE.replace("workers = 8", "workerss = 8"))
    expect(page.locator(".editor .gutter .bad")).to_have_text("✕ 4")
    expect(page.locator(".faults li").first).to_contain_text("workers")
    page.screenshot(path=f"{screenshots}/new-job-fault.png")
    # Names of settings are suggested from the schema.
    editor.fill(daemon.PROFILE)
    editor.press("Control+End")
    editor.type("\n[poli")
    proposals = page.get_by_role("listbox", name="Settings")
    expect(proposals.get_by_role("option").first).to_contain_text("politeness")
    page.screenshot(path=f"{screenshots}/new-job-proposals.png")
    editor.press("Escape")
    expect(proposals).to_be_hidden()
    editor.fill(daemon.PROFILE)
    # Two warnings: the shortest and the first wait of the evaluator are shorter than the profile allows.
    expect(page.get_by_text("2 warnings")).to_be_visible()
    # Settings that are not allowed over the API are reported while they are written.
    editor.fill(daemon.PROFILE + daemon.LOOPBACK)
    expect(page.locator(".faults li").first).to_contain_text("fetch.allow-addresses")
    editor.fill(daemon.PROFILE)
    # Two hosts, so that the crawl continues while the queue of one is retired.
    seeds = f"{seed}\n{seed.replace('www.', 'news.')}"
    page.get_by_label("Seeds", exact=True).fill(seeds)
    # A draft survives a reload.
    page.reload()
    expect(page.get_by_label("Name", exact=True)).to_have_value(JOB)
    expect(page.get_by_label("Seeds", exact=True)).to_have_value(seeds)
    expect(editor).to_have_value(daemon.PROFILE)
    page.get_by_label("Profile", exact=True).select_option("loopback")
    expect(editor).to_be_hidden()
    page.get_by_role("button", name="Create job").click()
    expect(page.get_by_role("heading", name=JOB, level=1)).to_be_visible()
    # A second job with the same name is refused, with a message in the form.
    page.get_by_role("link", name="New job").first.click()
    page.get_by_label("Name", exact=True).fill(JOB)
    page.get_by_label("Seeds", exact=True).fill(seed)
    page.get_by_role("button", name="Create job").click()
    expect(page.locator("form .form-error:visible")).to_contain_text(JOB)
    page.get_by_label("Name", exact=True).fill("")


def overview(page, served, screenshots):
    page.goto(served.job_address())
    badge = page.locator(".head .badge").first
    expect(badge).to_have_text("running")
    # Figures are updated without a reload.
    known = tile(page, "URIs known")
    expect(known).not_to_have_text(re.compile("^[0-9]$"))
    visits = page.locator(".link-state.live")
    expect(visits).to_have_text("Live")
    first = tile(page, "Revisits").inner_text()
    expect(tile(page, "Revisits")).not_to_have_text(first)
    chart = page.locator("figure", has_text="URIs per second")
    expect(chart.locator("path.line")).to_have_count(1)
    drawn = chart.locator("path.line").get_attribute("d")
    expect(chart.locator("path.line")).not_to_have_attribute("d", drawn)
    chart.get_by_text("As a table").click()
    expect(chart.locator("tbody tr").first).to_contain_text("UTC")
    for title in ["Fetch status", "Media types", "Busiest hosts", "Time in plugins"]:
        expect(page.locator("figure", has_text=title).locator("ol.bars li").first).to_be_visible()
    page.get_by_role("button", name="an hour").click()
    expect(page.get_by_role("button", name="an hour")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="5 minutes").click()

    page.get_by_role("button", name="Pause").click()
    expect(badge).to_have_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(badge).to_have_text("running")
    page.get_by_role("button", name="Checkpoint").click()
    notice(page, "checkpoint")
    # The checkpoint is listed, but cannot be restored while the job crawls.
    kept = rows(page, "Checkpoints")
    expect(kept).to_have_count(1)
    expect(kept.get_by_role("button")).to_have_count(0)


def jobs(page, served):
    """Actions in the list of jobs."""
    page.goto(served.address + "#/")
    row = rows(page, "Jobs").filter(has_text=JOB)
    for act, state in [("Pause", "paused"), ("Resume", "running")]:
        row.get_by_text("Actions", exact=True).click()
        row.get_by_role("button", name=act).click()
        # A notice is shown, which can be dismissed. It would disappear by itself after some seconds.
        page.get_by_role("button", name="Dismiss").last.click()
        expect(row.locator(".badge").first).to_have_text(state)
    page.get_by_label("State").select_option("crashed")
    expect(page.get_by_text("No matching jobs.")).to_be_visible()


def seeds(page, served, seed):
    page.goto(served.job_address("seeds"))
    listed = rows(page, "Seeds")
    expect(listed.filter(has_text=seed)).to_contain_text("today")
    added = seed.replace("www.", "added.")
    page.get_by_role("button", name="Add seeds").click()
    page.get_by_role("dialog").get_by_label("Seeds").fill(added)
    confirm(page, "Add")
    expect(listed.filter(has_text=added)).to_contain_text("added")
    listed.filter(has_text=added).get_by_role("button", name="Remove").click()
    confirm(page, "Remove")


def plugins(page, served):
    page.goto(served.job_address("plugins"))
    html = rows(page, "Plugins").filter(has=page.locator("th", has_text=re.compile("^html$")))
    expect(html).not_to_contain_text("– 0")
    # The first wait is shorter than the profile allows. That is shown, but is not an error of the plugin.
    adaptive = rows(page, "Plugins").filter(has=page.locator("th", has_text=re.compile("^adaptive$")))
    expect(adaptive.locator(".hint", has_text=re.compile("[1-9][0-9,]* waits? raised to the shortest"))).to_be_visible()
    expect(html).not_to_contain_text("raised to the shortest")
    expect(page.get_by_text("surt-scope").last).to_be_visible()
    # The page of a plugin has its settings and stages. This plugin has no errors.
    page.get_by_role("rowheader").get_by_role("link", name="adaptive", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="adaptive", exact=True)).to_be_visible()
    expect(page.locator("main")).to_contain_text(re.compile("Stages.*wait"))
    expect(page.locator("main")).to_contain_text("initial-wait")
    expect(page.locator("main")).to_contain_text("No recorded calls.")
    page.goto(served.job_address("plugins"))
    page.get_by_role("button", name="Replace html", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Component", exact=True).fill("builtin:no-such-thing")
    dialog.get_by_role("button", name="Replace").click()
    expect(dialog.locator(".form-error")).to_contain_text("no-such-thing")
    dialog.get_by_label("Component", exact=True).fill("builtin:html")
    dialog.get_by_label("New settings").fill("{")
    dialog.get_by_role("button", name="Replace").click()
    expect(dialog.locator(".form-error")).to_contain_text("not JSON")
    dialog.get_by_label("New settings").fill("{}")
    confirm(page, "Replace")
    page.get_by_role("button", name="Refresh").click()
    # Tables are reloaded from their files.
    table = page.get_by_role("region", name="Look-up tables of plugins")
    expect(table).to_contain_text("closed")
    with open(served.table, "a") as file:
        file.write("http://(localhost,harvest,shut,\n")
    page.get_by_role("button", name="Reload files").click()
    notice(page, "reloaded")
    expect(table.locator("tbody")).to_contain_text("2")


def logs(page, served):
    # An address with a `%` that does not begin an escape is handled, too.
    page.goto(served.job_address("logs") + "%")
    expect(page.get_by_text("Page not found")).to_be_visible()
    page.goto(served.job_address("logs"))
    lines = page.get_by_role("log")
    expect(lines).to_contain_text("http")
    page.get_by_label("Lines with").fill("200 ")
    expect(lines.locator("mark").first).to_have_text("200 ")
    page.get_by_label("Regular expression").check()
    page.get_by_label("Lines with").fill("text/(html|css)")
    expect(lines.locator("mark").first).to_have_text(re.compile("^text/"))
    page.get_by_label("Lines with").fill("")
    # The page follows the log.
    before = lines.inner_text()
    expect(lines).not_to_have_text(before)
    # A checkpoint begins a new file. Wait until it has more than ten lines, so that there are earlier ones.
    expect(page.get_by_text(re.compile(r"^([1-9]\d{2,}|[2-9]\d|1[1-9]) lines, the last ones"))).to_be_visible()
    # Without "Follow", earlier lines can be shown page by page, and then the latest again.
    page.get_by_label("Follow").uncheck()
    page.get_by_label("Wrap").check()
    expect(lines).to_have_class(re.compile("is-wrapped"))
    page.get_by_label("Lines", exact=True).fill("10")
    page.get_by_label("Lines", exact=True).press("Enter")
    expect(page.get_by_text("10 lines, the last ones")).to_be_visible()
    shown = lines.inner_text()
    page.get_by_role("button", name="Earlier").click()
    expect(lines).not_to_contain_text(shown.splitlines()[0])
    page.get_by_role("button", name="Latest").click()
    expect(page.get_by_text("10 lines, the last ones")).to_be_visible()
    # An invalid pattern is reported on this page only.
    page.get_by_label("Lines with").fill("(")
    expect(page.get_by_text("invalid regular expression")).to_be_visible()
    expect(lines).to_have_text("")
    expect(page.locator(".notice.failed")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("invalid regular expression")).to_be_visible()
    page.get_by_label("Regular expression").uncheck()
    page.get_by_label("Lines with").fill("pause")
    page.get_by_label("Log", exact=True).select_option("job.log")
    expect(lines.locator("mark").first).to_have_text("pause")


def reports(page, served):
    page.goto(served.job_address("reports"))
    kinds = page.get_by_label("Report", exact=True).locator("option")
    expect(kinds.nth(4)).to_be_attached()
    for kind in kinds.all_inner_texts():
        page.get_by_label("Report", exact=True).select_option(kind)
        expect(page.get_by_role("link", name="Save as text")).to_have_attribute("download", f"{JOB}-{kind}.txt")
        expect(page.locator("pre.lines")).to_contain_text(re.compile(r"\w"))
    page.get_by_label("Report", exact=True).select_option("crawl")
    page.get_by_role("button", name="Refresh").click()
    for link, ending, beginning in [("Save as text", "txt", "\\w"), ("Save as JSON", "json", "{")]:
        with page.expect_download() as download:
            page.get_by_role("link", name=link).click()
        if download.value.suggested_filename != f"{JOB}-crawl.{ending}":
            raise AssertionError(f"a report is called {download.value.suggested_filename}")
        with open(download.value.path()) as file:
            if not re.match(beginning, file.read().lstrip()):
                raise AssertionError(f"{link} saves something else")


def settings(page, served, screenshots):
    page.goto(served.job_address("settings"))
    lines = page.get_by_label("Settings, one per line as in a profile")
    lines.fill('politeness.min-delay = "five"\npoliteness.mindelay = "1s"')
    page.get_by_role("button", name="Check only").click()
    expect(page.locator("form .form-error li")).to_have_count(2)
    page.screenshot(path=f"{screenshots}/settings-faults.png")
    lines.fill("")
    page.get_by_label("Search").fill("min-delay")
    # The search applies after a pause, and hides this section.
    expect(page.locator(".section-title", has_text="Set for this job")).to_be_hidden()
    page.get_by_role("button", name="Change politeness.min-delay", exact=True).click()
    expect(lines).to_have_value('politeness.min-delay = "200ms"')
    # A setting with a line gets no second line.
    page.get_by_role("button", name="Change politeness.min-delay", exact=True).click()
    expect(lines).to_be_focused()
    expect(lines).to_have_value('politeness.min-delay = "200ms"')
    # A typed field beside the lines writes the line of its setting.
    number = page.get_by_role("group", name="politeness.min-delay", exact=True).get_by_role("textbox")
    number.fill("400")
    number.press("Enter")
    expect(lines).to_have_value('politeness.min-delay = "400ms"')
    lines.fill('politeness.min-delay = "300ms"')
    page.get_by_role("button", name="Check only").click()
    expect(page.get_by_text("No errors. The settings would change:")).to_be_visible()
    page.locator("form").get_by_role("button", name="Change", exact=True).click()
    expect(page.get_by_text("Changed settings:")).to_be_visible()
    button = page.get_by_role("button", name="Change politeness.min-delay", exact=True)
    expect(rows(page, "politeness").filter(has=button)).to_contain_text('"300ms"')
    # Settings are in sections that fold. A search opens sections with a match. The section of changed settings is open.
    page.get_by_label("Search").fill("")
    expect(rows(page, "Set for this job").filter(has=button)).to_contain_text('"300ms"')
    section = page.locator("details.section").filter(has=page.locator(".section-title", has_text=re.compile("^politeness$")))
    expect(page.get_by_role("region", name="politeness", exact=True)).to_be_hidden()
    section.locator("summary").press("Enter")
    expect(rows(page, "politeness").first).to_be_visible()
    # Expert settings are shown on request.
    numbers = page.get_by_text(re.compile("^[0-9]+ of [0-9]+ settings$"))
    before = numbers.inner_text()
    page.get_by_label("Include expert settings").check()
    expect(numbers).not_to_have_text(before)
    page.get_by_role("link", name="add an override").click()
    expect(page.get_by_role("heading", name="Overrides", level=1)).to_be_visible()


def overrides(page, served, screenshots):
    """Overrides: previewed, added, moved with the keyboard, edited and removed."""
    page.goto(served.job_address("overrides"))
    listed = rows(page, "Overrides")
    lines = page.get_by_label("Settings, one per line as in a profile")
    dialog = page.get_by_role("dialog")
    lines.fill('politeness.min-delay = "five"')
    page.get_by_label("Hosts").fill("news.harvest.localhost")
    page.get_by_role("button", name="Preview …").click()
    expect(page.locator("form .form-error li")).to_have_count(1)
    # The field of a setting writes its line, and a change of the line is shown in the field. Lists and maps have fields, too.
    lines.fill("")
    for setting, typed, line in [
        ("retry.statuses", "503\n429", "retry.statuses = [503, 429]"),
        ("fetch.headers", "Accept-Language = da", 'fetch.headers = { "Accept-Language" = "da" }'),
    ]:
        page.get_by_label("Setting to add").select_option(setting)
        page.get_by_role("button", name="Add setting").press("Enter")
        area = page.get_by_label(setting, exact=True)
        expect(area).to_be_focused()
        area.fill(typed)
        area.blur()
        expect(lines).to_have_value(line)
        lines.fill("")
        expect(area).to_have_value("")
    page.get_by_label("Setting to add").select_option("politeness.min-delay")
    page.get_by_role("button", name="Add setting").press("Enter")
    delay = page.get_by_role("group", name="politeness.min-delay", exact=True)
    expect(delay.get_by_role("textbox")).to_be_focused()
    delay.get_by_role("combobox").select_option("ms")
    delay.get_by_role("textbox").fill("450")
    delay.get_by_role("textbox").press("Enter")
    expect(lines).to_have_value('politeness.min-delay = "450ms"')
    lines.fill('politeness.min-delay = "400ms"')
    expect(delay.get_by_role("textbox")).to_have_value("400")
    page.get_by_role("button", name="Preview …").click()
    expect(dialog.get_by_text(re.compile("Matches [1-9][0-9,]* known URIs"))).to_be_visible()
    expect(dialog).to_contain_text('"300ms" → "400ms"')
    page.screenshot(path=f"{screenshots}/override.png")
    dialog.get_by_label("Reason").fill("asked by mail")
    confirm(page, "Save")
    expect(listed.last).to_contain_text("asked by mail")
    lines.fill('robots.policy = "ignore"')
    page.get_by_label("Domains").fill("harvest.localhost")
    page.get_by_role("button", name="Preview …").click()
    confirm(page, "Save")
    expect(listed.last).to_contain_text("robots.policy")
    # A row is moved up with the keyboard, and keeps the focus.
    listed.last.get_by_role("button", name="Move up").press("Enter")
    confirm(page, "Move")
    expect(listed.last).to_contain_text("400ms")
    expect(listed.nth(-2).get_by_role("button", name="Move down")).to_be_focused()
    listed.last.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Hosts")).to_have_value("news.harvest.localhost")
    expect(delay.get_by_role("textbox")).to_have_value("400")
    lines.fill('politeness.min-delay = "500ms"')
    page.get_by_role("button", name="Preview …").click()
    confirm(page, "Save")
    expect(listed.last).to_contain_text("500ms")
    page.screenshot(path=f"{screenshots}/overrides.png", full_page=True)
    listed.nth(-2).get_by_role("button", name="Remove").click()
    confirm(page, "Remove")
    expect(listed.filter(has_text="robots.policy")).to_have_count(0)
    page.goto(served.job_address("history"))
    entries = page.locator("ol.timeline")
    expect(entries).to_contain_text("300ms")
    expect(entries).to_contain_text("news.harvest.localhost")
    expect(entries.locator("li", has_text="asked by mail")).to_contain_text("added by lena")


def profile(page, served):
    """The profile with which the job was created is shown, and a new job can be created from its text."""
    page.goto(served.job_address("profile"))
    editor = page.get_by_role("textbox", name="Profile (TOML)")
    expect(editor).to_have_value(re.compile('name = "news"'))
    expect(editor).not_to_be_editable()
    expect(page.get_by_text("Created with loopback version 1.")).to_be_visible()
    page.get_by_role("button", name="New job from this text").click()
    expect(page.get_by_role("heading", name="New job", level=1)).to_be_visible()
    expect(editor).to_have_value(re.compile('name = "news"'))
    # A click on an error moves the cursor to its line. Names are suggested inside of a table, and chosen with the keyboard.
    editor.fill(daemon.PROFILE.replace("workers = 8", "workerss = 8"))
    page.locator(".faults li button").first.click()
    expect(editor).to_be_focused()
    if editor.evaluate("area => area.value.slice(0, area.selectionStart).split('\\n').length") != 4:
        raise AssertionError("a click on an error does not move the cursor to its line")
    editor.fill("[politeness]\n")
    editor.press("Control+End")
    editor.press("Control+ ")
    proposals = page.get_by_role("listbox", name="Settings")
    expect(proposals.get_by_role("option", selected=True)).to_have_count(1)
    editor.type("min-d")
    expect(proposals.get_by_role("option").first).to_contain_text("min-delay")
    editor.press("Enter")
    expect(editor).to_have_value("[politeness]\nmin-delay = ")
    editor.fill(daemon.PROFILE)

def alerts(page, served):
    page.goto(served.job_address("alerts"))
    expect(page.get_by_role("heading", name="Active")).to_be_visible()
    # The alert is active because the profile requires more free space than any disk has.
    page.get_by_role("button", name="Acknowledge").click()
    notice(page, "acknowledged")
    expect(page.get_by_text("acknowledged by lena")).to_be_visible()


def clone(page, served, screenshots):
    page.goto(served.job_address())
    page.get_by_role("button", name="Clone").click()
    page.get_by_role("dialog").get_by_label("Name of the new job").fill("news-copy")
    confirm(page, "Clone")
    expect(page.get_by_role("heading", name="news-copy", level=1)).to_be_visible()
    badge = page.locator(".head .badge").first
    page.get_by_role("button", name="Start").click()
    expect(badge).to_have_text("running")
    restore_checkpoint(page, screenshots)
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type the name").fill("news")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog.locator(".form-error")).to_contain_text("the name is not")
    dialog.get_by_label("Type the name").fill("news-copy")
    dialog.get_by_label("Delete archive").check()
    confirm(page, "Delete")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="news-copy", exact=True)).to_have_count(0)


def restore_checkpoint(page, screenshots):
    """Stops a job and restores a checkpoint with the keyboard. The job has fewer URIs after that, and the page shows the reason."""
    expect(tile(page, "URIs known")).not_to_have_text(re.compile("^[0-9]$"))
    page.get_by_role("button", name="Checkpoint").click()
    kept = rows(page, "Checkpoints")
    expect(kept).to_have_count(1)
    name = kept.locator("th .mono").inner_text()
    then = kept.locator("td[data-title='URIs known']").inner_text()
    page.get_by_role("button", name="Stop").click()
    confirm(page, "Stop")
    restore = page.get_by_role("button", name=f"Restore {name}")
    restore.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Restore news-copy?")
    expect(dialog).to_contain_text("Archive files, logs and history are kept")
    page.screenshot(path=f"{screenshots}/restore.png")
    # Escape closes the dialog without a change, and the focus returns to the button.
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(restore).to_be_focused()
    page.keyboard.press("Enter")
    confirm(page, "Restore")
    notice(page, f"with {then} URIs|start it")
    expect(page.get_by_text(f"restored to checkpoint {name}")).to_be_visible()
    expect(tile(page, "URIs known")).to_have_text(then)
    expect(page.locator(".head .badge").first).to_have_text("stopped")
    # Without a process visits are not counted: the numbers are those of URIs.
    expect(tile(page, "Succeeded URIs")).to_have_text(re.compile("^[0-9]"))
    expect(tile(page, "Documents")).to_have_count(0)
    page.screenshot(path=f"{screenshots}/checkpoints.png", full_page=True)
    job = page.url
    page.goto(f"{job}/history")
    expect(page.locator("ol.timeline li", has_text="restored").first).to_contain_text(name)
    page.goto(job)


def colours_and_keys(page, served):
    page.goto(served.address + "#/daemon")
    # Administrators see the audit log.
    expect(rows(page, "Audit log, newest first").first).to_contain_text("lena")
    expect(fact(page, "Signed in as")).to_contain_text("lena")
    button = page.get_by_role("button", name="Change colours")
    for theme in ["light", "dark"]:
        button.click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    button.click()
    expect(page.locator("html")).not_to_have_attribute("data-theme", re.compile("."))
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Disable single keys").check()
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Daemon", level=1)).to_be_visible()
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Disable single keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()


def sign_out(page, served):
    """After signing out, the session's cookie is no longer valid."""
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("dialog", name="Sign in to Opilio")).to_be_visible()
    if page.request.get(served.address + "api/v1/jobs").status != 401:
        raise AssertionError("signing out leaves the session open")
