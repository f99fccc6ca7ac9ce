"""Pages that show the results of a crawl: hosts, crawl log, comparison with a checkpoint, charts, and links to replay."""

import contextlib
import itertools
import os
import re
import shlex
import socket
import subprocess
import sys
from datetime import datetime, timedelta, timezone

from playwright.sync_api import expect

import daemon
from daemon import JOB
from parts import rows, tile


def run(browser, served, seed, screenshots, **_):
    faults = []
    with daemon.open_page(browser, faults, expects=["status of (401|422)"], viewport={"width": 1280, "height": 900}) as page:
        served.sign_in(page)
        hosts(page, served, seed)
        crawl_log(page, served, seed)
        compare(page, served, screenshots)
        gap(page, served, screenshots)
        captures(page, served, seed)
    return faults


def hosts(page, served, seed):
    name = seed.split("/")[2].split(":")[0]
    page.goto(served.job_address("hosts"))
    listed = rows(page, "Hosts")
    expect(listed.filter(has_text=name).first).to_be_visible()
    expect(page.locator("svg.treemap g[class] rect").first).to_be_visible()
    # Sorted by a column in both directions. A reload keeps the order.
    head = page.get_by_role("columnheader", name="Documents")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.reload()
    expect(head).to_have_attribute("aria-sort", "ascending")
    page.get_by_label("Hosts with", exact=True).fill("nowhere")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No matching hosts.")).to_be_visible()
    page.get_by_label("Hosts with", exact=True).fill(name)
    page.get_by_role("button", name="Search").click()
    expect(listed).to_have_count(1)
    page.get_by_label("Size of tiles").select_option("documents")
    listed.first.get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", name="Crawl log", level=1)).to_be_visible()
    expect(page.get_by_label("Host", exact=True)).to_have_value(name)


def crawl_log(page, served, seed):
    page.goto(served.job_address("crawl-log"))
    listed = rows(page, "Visits")
    expect(listed).to_have_count(100)
    # The second of two quick clicks has no effect, because the cursor of the page after next is not known yet.
    page.get_by_role("button", name="Next").evaluate("button => { button.click(); button.click(); }")
    expect(page.locator(".position")).to_have_text("101 to 200")
    page.get_by_label("Status", exact=True).fill("200")
    page.get_by_label("Media type", exact=True).fill("text/*")
    page.get_by_label("Plugin", exact=True).fill("adaptive")
    page.get_by_label("Plugin", exact=True).press("Enter")
    expect(listed.first).to_contain_text("wt-by:adaptive")
    expect(listed.locator("td:nth-child(2)").filter(has_not_text="200")).to_have_count(0)
    page.get_by_label("Order", exact=True).select_option("oldest-first")
    expect(listed.first).to_contain_text("wt-by:adaptive")
    # An invalid pattern is reported, and no rows are shown.
    page.get_by_label("Lines with", exact=True).fill("(")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("invalid regular expression")).to_be_visible()
    expect(listed).to_have_count(0)
    page.get_by_label("Lines with", exact=True).fill("no such text")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("No matching visits.")).to_be_visible()


def compare(page, served, screenshots):
    served.ask("POST", f"jobs/{JOB}/checkpoint")
    page.goto(served.job_address("compare"))
    page.get_by_role("button", name="Compare").click()
    expect(tile(page, "Both")).to_have_text(re.compile("^[1-9]"))
    expect(rows(page, "By status").first).to_be_visible()
    page.get_by_label("List", exact=True).select_option("only-a")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("heading", name="Differing URIs")).to_be_visible()
    expect(page.get_by_role("button", name="Compare")).to_be_enabled()
    page.screenshot(path=f"{screenshots}/compare-checkpoint.png", full_page=True)
    left = [name for name in os.listdir(os.path.join(served.jobs, JOB, "checkpoints")) if name.startswith(".")]
    assert left == [], left


def gap(page, served, screenshots):
    """Charts have a gap where no process measured: here between two groups of ten samples, which are two minutes apart."""
    answer = served.ask("GET", f"jobs/{JOB}/series")
    last, now = answer["samples"][-1], datetime.now(timezone.utc)
    samples = []
    for number in range(20):
        at = now - timedelta(seconds=20 - number, minutes=2 if number < 10 else 0)
        samples.append({**last, "at": at.isoformat(), "uris": number * number})
    page.route(re.compile(f"/api/v1/jobs/{JOB}/series"), lambda route: route.fulfill(json={**answer, "samples": samples}))
    page.goto(served.job_address())
    chart = page.locator("figure", has_text="URIs per second")
    lines = chart.locator("path.line")
    expect(lines).to_have_count(2)
    points = [line.get_attribute("d").count(" ") for line in lines.all()]
    assert points == [9, 9], points
    # Three lines, each with a gap.
    expect(page.locator("figure", has=page.get_by_text("URIs", exact=True)).locator("path.line")).to_have_count(6)
    # The crosshair is moved into the gap with the keyboard.
    chart.locator("svg.plot").focus()
    for key in ["Home"] + 9 * ["ArrowRight"]:
        page.keyboard.press(key)
    expect(chart.locator(".readout")).to_contain_text("not measured")
    page.screenshot(path=f"{screenshots}/chart-gap.png")
    page.unroute_all()


def captures(page, served, seed):
    page.goto(served.job_address(f"uri?uri={seed}"))
    expect(page.get_by_text("opilio job replay")).to_be_visible()
    expect(page.get_by_role("link", name="ReplayWeb.page")).to_be_visible()
    with replaying(served) as address:
        page.reload()
        link = page.get_by_role("link", name="Replay with pywb")
        expect(link).to_have_attribute("href", re.compile(rf"^{re.escape(address)}\d{{14}}/{re.escape(seed)}$"))
        expect(page.get_by_role("link", name="all captures in pywb")).to_have_attribute("href", f"{address}*/{seed}")
    page.goto(served.job_address("seeds"))
    expect(rows(page, "Seeds").first.locator("td").nth(2)).to_contain_text(re.compile("ago|just now"))


@contextlib.contextmanager
def replaying(served):
    """Runs `opilio job replay` with a web server in place of pywb. Yields the address of the collection."""
    wayback = os.path.join(served.home, "wayback")
    with open(wayback, "w") as file:
        # `opilio` calls it with -b ADDRESS -p PORT.
        file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -u -m http.server -b "$2" "$4"\n')
    os.chmod(wayback, 0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [served.opilio, "job", "replay", os.path.join(served.jobs, JOB), "--wayback", wayback, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(process.stdout.readline, "")
        output = list(itertools.takewhile(lambda line: "Serving HTTP" not in line, lines))
        assert process.poll() is None, output
        yield f"http://127.0.0.1:{port}/{JOB}/"
    finally:
        process.terminate()
        process.wait()
