"""Creates a job, packs it and hands it over to S3 with the keyboard only, and reads it there with boto3. The S3 server is moto.

Every step is checked in light, in dark and 390 pixels wide, with axe.
"""

import io
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile

import boto3
from botocore.config import Config
from playwright.sync_api import expect

import daemon
from keyboard import tab_to
from looks import SCREENS, accessibility_faults, check_screens
from parts import fact, notice, rows

BUCKET = "web-archive"
KEYS = ("console", "of-the-judge")
JOB = "stored"
PROFILE = """extends = "snapshot"
workers = 4

[politeness]
delay-factor = 0.0
min-delay = "10ms"
max-delay = "10ms"

[dns]
hosts = {{ "*.localhost" = "127.0.0.1" }}

[fetch]
allow-addresses = ["loopback"]

[limits]
documents = 12

[alerts]
disk-warn = "none"
disk-pause = "none"

[archive.store]
url = "s3://{bucket}/crawls"
endpoint = "{endpoint}"
access-key-id = {{ env = "STORE_KEY" }}
secret-access-key = {{ env = "STORE_SECRET" }}
"""


class Store:
    """An S3 server on loopback with one bucket."""

    def __init__(self, home):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=subprocess.DEVNULL,
            stderr=open(os.path.join(home, "moto.log"), "w"),
        )
        end = time.monotonic() + 120
        while not self.answers():
            if time.monotonic() > end:
                raise SystemExit("the S3 server does not start; see moto.log")
            time.sleep(0.05)
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEYS[0],
            aws_secret_access_key=KEYS[1],
            config=Config(s3={"addressing_style": "path"}),
        )
        self.client.create_bucket(Bucket=BUCKET)
        # The daemon's crawls read their keys from the environment.
        os.environ["STORE_KEY"], os.environ["STORE_SECRET"] = KEYS
        # Profiles with addresses of servers are not accepted over the API, so this one is in the daemon's folder.
        with open(os.path.join(home, "profiles", f"{JOB}.toml"), "w") as file:
            file.write(PROFILE.format(bucket=BUCKET, endpoint=self.endpoint))

    def answers(self):
        try:
            return urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=5).status == 200
        except OSError:
            return False

    def end(self):
        self.process.terminate()
        self.process.wait()


def run(browser, served, seed, axe, screenshots, store, **_):
    faults = []
    with open(axe, encoding="utf-8") as file:
        axe = file.read()
    # A process that starts or ends refuses commands with status 409.
    with daemon.open_page(browser, faults, expects=["status of 40[19]"], viewport={"width": 1280, "height": 900}, reduced_motion="reduce") as page:

        def look(step):
            faults.extend(check_screens(page, axe, f"{screenshots}/store-{step}"))

        served.sign_in(page)
        crawl(page, served, seed, look)
        name = pack(page, look)
        hand_over(page, name, look)
        faults += check_package(store, name)
    for screen, options in SCREENS.items():
        with daemon.open_page(browser, faults, expects=["status of 401"], **options) as page:
            served.sign_in(page)
            page.goto(served.job_address("files", JOB))
            expect(fact(page, "Waiting")).to_be_visible()
            page.screenshot(path=f"{screenshots}/files-stored-{screen}.png", full_page=True)
            width = page.evaluate("document.documentElement.scrollWidth")
            if width > options["viewport"]["width"]:
                faults.append(f"files, {screen}: {width} pixels wide")
            faults += [f"files, {screen}: {fault}" for fault in accessibility_faults(page, axe)]
    served.ask("DELETE", f"jobs/{JOB}?archive=true")
    return faults


def crawl(page, served, seed, look):
    """Creates a job with the profile and waits until it has ended."""
    keys = page.keyboard
    page.goto(served.address + f"#/new?profile={JOB}")
    tab_to(page, page.get_by_label("Name", exact=True))
    keys.type(JOB)
    tab_to(page, page.get_by_label("Contact URL"))
    keys.type("https://crawler.harvest.library/about")
    tab_to(page, page.get_by_label("Seeds", exact=True))
    keys.type(seed)
    look("job-form")
    tab_to(page, page.get_by_role("button", name="Create job"))
    keys.press("Enter")
    expect(page.get_by_role("heading", name=JOB, level=1)).to_be_visible()
    expect(page.locator(".head .badge").first).to_have_text("finished")
    look("job-finished")


def pack(page, look):
    """Packs the archive. Returns the package's name."""
    keys = page.keyboard
    page.evaluate("document.activeElement.blur()")
    tab_to(page, page.get_by_role("link", name="Files", exact=True).first)
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Files", level=1)).to_be_visible()
    # The crawl has handed over its own files already.
    expect(rows(page, "Files").filter(has_text=".warc.gz").first).to_contain_text(f"s3://{BUCKET}/crawls/{JOB}/warcs/")
    tab_to(page, page.get_by_role("button", name="Pack as WACZ …"))
    keys.press("Enter")
    expect(page.get_by_role("dialog").get_by_label("Title")).to_be_focused()
    look("package")
    keys.type("The web of the judge")
    keys.press("Enter")
    notice(page, "is being written")
    expect(page.get_by_role("status").filter(has_text="was written")).to_be_visible()
    package = rows(page, "Files").filter(has_text=".wacz")
    expect(package).to_have_count(1)
    return package.locator("th a").inner_text()


def hand_over(page, name, look):
    """Hands over the remaining file, the package."""
    tab_to(page, page.get_by_role("button", name="Hand over", exact=True))
    page.keyboard.press("Enter")
    notice(page, "the hand-over has begun")
    expect(page.get_by_role("status").filter(has_text="handed over, started by lena")).to_be_visible()
    expect(rows(page, "Files").filter(has_text=name)).to_contain_text(f"s3://{BUCKET}/crawls/{JOB}/{name}")
    look("hand-over")


def check_package(store, name):
    """Checks the package in the store; returns the errors."""
    answer = store.client.get_object(Bucket=BUCKET, Key=f"crawls/{JOB}/{name}")
    with zipfile.ZipFile(io.BytesIO(answer["Body"].read())) as package:
        names = package.namelist()
        about = json.loads(package.read("datapackage.json"))
    faults = [] if any(name.startswith("archive/") for name in names) else [f"the stored package has no archive: {names}"]
    if about.get("title") != "The web of the judge":
        faults.append(f"the stored package has another title: {about}")
    return faults
