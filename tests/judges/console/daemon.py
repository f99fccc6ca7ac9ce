"""The daemon under test, and a browser's way to it."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.request

from playwright.sync_api import expect

# A debug build that compiles components on a busy machine takes its time.
expect.set_options(timeout=60000)

JOB = "news"
PROFILE = """name = "news"
strategy = "revisit"
seeds = []
workers = 8

[politeness]
delay-factor = 0.0
min-delay = "200ms"
max-delay = "1s"

[plugins.adaptive]
component = "builtin:adaptive"
settings = { initial-wait = "3s", min-wait = "2s", max-wait = "1m", default-wait = "5s" }

[revisit]
default-wait = "5s"
min-wait = "2s"
max-wait = "1m"

[operator]
contact-url = "https://crawler.harvest.library/about"
"""


LOOPBACK = """
[dns]
hosts = { "*.localhost" = "127.0.0.1" }

[fetch]
allow-addresses = ["loopback"]
"""


class Daemon:
    def __init__(self, opilio, home):
        self.opilio = opilio
        self.jobs = os.path.join(home, "jobs")
        self.log = os.path.join(home, "daemon.log")
        self.config = os.path.join(home, "opilio.toml")
        profiles = os.path.join(home, "profiles")
        os.makedirs(profiles, exist_ok=True)
        # What may connect to loopback comes from the daemon's own folder, not over the API.
        with open(os.path.join(profiles, "loopback.toml"), "w") as file:
            file.write(PROFILE + LOOPBACK)
        with open(self.config, "w") as file:
            file.write(f'profiles = {json.dumps(profiles)}\n')
        os.makedirs(self.jobs, exist_ok=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self.token = subprocess.run(
            [opilio, "token", "new", "lena", "--role", "admin", "--config", self.config, "--jobs", self.jobs],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()[-1]
        self.process = None

    def start(self):
        command = [self.opilio, "serve", "--config", self.config, "--jobs", self.jobs, "--listen", f"127.0.0.1:{self.port}"]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while True:
            try:
                urllib.request.urlopen(self.address + "healthz")
                return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(f"the daemon does not start; see {self.log}")
                time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, method, path, body=None):
        """Asks the API without a browser."""
        request = urllib.request.Request(
            self.address + "api/v1/" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def sign_in(self, page, path="#/"):
        """Opens a page of the console in a browser that nobody has signed in with yet."""
        page.goto(self.address + path)
        page.get_by_label("Token").fill(self.token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("dialog").wait_for(state="detached")

    def end(self):
        """Ends the jobs as well, which go on without the daemon."""
        for job in os.listdir(self.jobs):
            subprocess.run(
                [self.opilio, "job", "stop", os.path.join(self.jobs, job)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self.stop()

    def of_job(self, page="", job=JOB):
        return f"{self.address}#/jobs/{job}{'/' + page if page else ''}"


@contextlib.contextmanager
def opened(browser, faults, expects=(), **options):
    """A page whose errors are faults, but for those that are expected."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(60000)

    def hear(kind, text):
        if not any(re.search(expected, text) for expected in expects):
            faults.append(f"{kind}: {text[:300]}")

    page.on("console", lambda message: hear("console", message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: hear("error", str(error)))
    try:
        yield page
    finally:
        context.close()
