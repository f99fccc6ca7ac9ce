"""Pages of plugins: failed calls with frames and the command that repeats them, a look-up table, the report of an observer."""

import json
import os
import re
import shlex
import subprocess

from playwright.sync_api import expect

import daemon
from looks import check_screens
from parts import fact, rows

JOB = "observed"
PROFILE = """
[plugins.broken]
component = {broken}

[plugins.counter]
component = {counter}

[plugins.surt-scope]
component = "builtin:surt-scope"
settings = {{ tables = ["closed"] }}

[stacks]
extract = {{ after = ["broken"] }}
observe = ["counter"]
"""


def run(browser, served, seed, axe, screenshots, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    # Profiles with names of files are not accepted over the API, so this one is in the daemon's folder.
    components = {name: json.dumps(os.path.join(served.home, f"{name}.wasm")) for name in ("broken", "counter")}
    with open(os.path.join(served.home, "profiles", f"{JOB}.toml"), "w") as file:
        file.write(daemon.PROFILE + daemon.LOOPBACK + PROFILE.format(**components))
    served.ask("POST", "jobs", {"name": JOB, "profile": JOB, "seeds": [seed], "start": True})
    with daemon.open_page(browser, faults, expects=["status of 40[139]"], viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as page:

        def look(step):
            faults.extend(check_screens(page, axe, f"{screenshots}/plugin-{step}"))

        served.sign_in(page)
        page.goto(served.job_address(job=JOB))
        expect(page.locator(".head .badge").first).to_have_text("running")
        failed(page, served, look)
        table(page, served)
        observer(page, served, look)
    served.ask("POST", f"jobs/{JOB}/stop")
    return faults


def of_plugin(page, served, name):
    page.goto(served.job_address(f"plugin?name={name}", JOB))
    expect(page.get_by_role("heading", name=name, level=1, exact=True)).to_be_visible()


def failed(page, served, look):
    """The page of an extractor that traps on every document."""
    of_plugin(page, served, "broken")
    # The page is updated without a reload. The oldest call stays the last in the list.
    expect(fact(page, "Errors")).to_contain_text(re.compile("trap [1-9]"))
    call = rows(page, "Recorded calls").last
    expect(call).to_contain_text("unreachable")
    call.locator("summary").click()
    expect(call.locator("pre")).to_have_text(re.compile("^at "))
    look("failed")
    command = shlex.split(call.locator("code.command").inner_text())
    assert command[:3] == ["opilio", "plugin", "replay"], command
    # The command is run in the folder of the job, as the page says. The call fails in the same way.
    again = subprocess.run([served.opilio, *command[1:]], cwd=os.path.join(served.jobs, JOB), capture_output=True, text=True)
    assert again.returncode == 0, again
    assert "unreachable" in again.stdout, again
    with page.expect_download() as download:
        call.get_by_role("link", name="Download the recording").click()
    with open(download.value.path()) as file:
        assert json.load(file)["instance"] == "broken"


def table(page, served):
    """The look-up table with the name in a setting of the plugin."""
    of_plugin(page, served, "surt-scope")
    expect(rows(page, "Look-up tables of plugins")).to_contain_text(["closed"])
    expect(page.locator("main")).to_contain_text("No recorded calls.")


def observer(page, served, look):
    """The report of an observer, on the plugin's page and, by a link on the job's page, among the reports."""
    of_plugin(page, served, "counter")
    expect(page.get_by_role("heading", name="Reports", level=2)).to_be_visible()
    expect(page.get_by_label("count.txt", exact=True)).to_have_text(re.compile(r"^\S\d"))
    look("observer")
    page.goto(served.job_address(job=JOB))
    page.get_by_role("link", name="counter: count.txt").click()
    expect(page.get_by_role("heading", name="Reports", level=1)).to_be_visible()
    expect(page.get_by_label("Report", exact=True)).to_have_value("counter/count.txt")
    expect(page.locator("pre.lines")).to_have_text(re.compile(r"^\S\d"))
