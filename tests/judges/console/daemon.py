"""The daemon under test, with its profiles, tokens and jobs; and pages of a browser."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.request

from playwright.sync_api import expect

# A debug build compiles components slowly on a busy machine.
expect.set_options(timeout=180000)

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
settings = { initial-wait = "1s", min-wait = "1s", max-wait = "1m", default-wait = "5s" }

[revisit]
default-wait = "5s"
min-wait = "2s"
max-wait = "1m"

[operator]
contact-url = "https://crawler.harvest.library/about"
"""


# More settings of the profile `loopback`, which is in the daemon's own folder: a web on loopback, with time for a page that its
# server holds back; an alert that is always active; and a look-up table for plugins.
LOOPBACK = """
[dns]
hosts = { "*.localhost" = "127.0.0.1" }

[fetch]
allow-addresses = ["loopback"]
response-timeout = "2m"

[alerts]
disk-warn = "1000TiB"

[tables.closed]
kind = "surt-prefixes"
file = "closed.txt"
"""

# The files that a stopped job needs in order to be listed. A thousand copies of a frontier would be too large.
JOB_FILES = ["job.json", "profile.toml", "seeds.txt", "orders.json", "process.json"]


class Daemon:
    def __init__(self, opilio, home):
        self.opilio = opilio
        self.home = home
        self.jobs = os.path.join(home, "jobs")
        self.log = os.path.join(home, "daemon.log")
        self.config = os.path.join(home, "opilio.toml")
        profiles = os.path.join(home, "profiles")
        os.makedirs(profiles, exist_ok=True)
        # Profiles that connect to loopback are not accepted over the API, so this one is in the daemon's folder.
        with open(os.path.join(profiles, "loopback.toml"), "w") as file:
            file.write(PROFILE + LOOPBACK)
        self.table = os.path.join(profiles, "closed.txt")
        with open(self.table, "w") as file:
            file.write("http://(localhost,harvest,closed,\n")
        with open(self.config, "w") as file:
            file.write(f'profiles = {json.dumps(profiles)}\n')
        os.makedirs(self.jobs, exist_ok=True)
        # Any free port at the first start; the same port after that.
        self.listen = "127.0.0.1:0"
        self.address = None
        self.tokens = {role: self.new_token(name, role) for name, role in [("lena", "admin"), ("omar", "operator"), ("vera", "viewer")]}
        self.token = self.tokens["admin"]
        self.process = None

    def new_token(self, name, role):
        """Creates a token for a user."""
        output = self.run("token", "new", name, "--role", role, "--config", self.config, "--jobs", self.jobs)
        return output.split()[-1]

    def run(self, *arguments):
        """Runs a command of the program, which must succeed. Returns its output."""
        return subprocess.run([self.opilio, *arguments], check=True, capture_output=True, text=True).stdout

    def start(self):
        command = [self.opilio, "serve", "--config", self.config, "--jobs", self.jobs, "--listen", self.listen]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        # The daemon prints its address when it accepts requests.
        self.address = self.process.stdout.readline().strip()
        if not self.address.startswith("http"):
            raise SystemExit(f"the daemon does not start; see {self.log}")
        self.listen = self.address.split("/")[2]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, method, path, body=None, headers=()):
        """Sends a request to the API, without a browser. Returns the answer's JSON, or None if it is empty."""
        request = urllib.request.Request(
            self.address + "api/v1/" + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json", **dict(headers)},
        )
        with urllib.request.urlopen(request) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def sign_in(self, page, path="#/", token=None):
        """Opens a page of the console in a browser without a session, and signs in."""
        page.goto(self.address + path)
        page.get_by_label("Token").fill(token or self.token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("dialog").wait_for(state="detached")

    def copy_job(self, job, names):
        """Copies a stopped job, without its frontier."""
        origin = os.path.join(self.jobs, job)
        for name in names:
            copy = os.path.join(self.jobs, name)
            os.mkdir(copy)
            for file in JOB_FILES:
                if file != "job.json" and os.path.exists(os.path.join(origin, file)):
                    shutil.copy(os.path.join(origin, file), copy)
            # job.json makes the folder a job. It is written last, as by the program.
            with open(os.path.join(origin, "job.json")) as file:
                made = json.load(file)
            with open(os.path.join(copy, "job.json"), "w") as file:
                json.dump({**made, "name": name}, file)

    def end(self):
        """Stops the daemon and its crawls, which would continue without it."""
        if self.process.poll() is not None:
            self.start()
        # There may be more jobs than a page of the list has, but few of them crawl.
        for state in ("running", "pausing", "paused"):
            for job in self.ask("GET", f"jobs?state={state}")["jobs"]:
                self.ask("POST", f"jobs/{job['name']}/stop")
        self.stop()

    def job_address(self, page="", job=JOB):
        return f"{self.address}#/jobs/{job}{'/' + page if page else ''}"


@contextlib.contextmanager
def open_page(browser, faults, expects=(), **options):
    """A new page of a browser. Its errors and warnings are added to `faults`, except those that match a regex in `expects`."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(180000)

    def add_fault(kind, text):
        if not any(re.search(expected, text) for expected in expects):
            faults.append(f"{kind}: {text[:300]}")

    page.on("console", lambda message: add_fault("console", message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: add_fault("error", str(error)))
    try:
        yield page
    finally:
        context.close()
