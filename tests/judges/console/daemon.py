"""The daemon under test, and a browser's way to it."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import urllib.request

from playwright.sync_api import expect

# A debug build that compiles components on a busy machine takes its time.
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


# What the daemon's own folder has beside it: a web on loopback, one page of which is held back for as long as the story wants, an
# alert that always stands, and a table that plugins may look things up in.
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

# What a job at rest needs in order to be listed; the store of what it knows would make a thousand of them heavy.
AT_REST = ["job.json", "profile.toml", "seeds.txt", "orders.json", "course.json"]


class Daemon:
    def __init__(self, opilio, home):
        self.opilio = opilio
        self.home = home
        self.jobs = os.path.join(home, "jobs")
        self.log = os.path.join(home, "daemon.log")
        self.config = os.path.join(home, "opilio.toml")
        profiles = os.path.join(home, "profiles")
        os.makedirs(profiles, exist_ok=True)
        # What may connect to loopback comes from the daemon's own folder, not over the API.
        with open(os.path.join(profiles, "loopback.toml"), "w") as file:
            file.write(PROFILE + LOOPBACK)
        self.table = os.path.join(profiles, "closed.txt")
        with open(self.table, "w") as file:
            file.write("http://(localhost,harvest,closed,\n")
        with open(self.config, "w") as file:
            file.write(f'profiles = {json.dumps(profiles)}\n')
        os.makedirs(self.jobs, exist_ok=True)
        # Any port that is free; the same from then on.
        self.listen = "127.0.0.1:0"
        self.address = None
        self.tokens = {role: self.new_token(name, role) for name, role in [("lena", "admin"), ("omar", "operator"), ("vera", "viewer")]}
        self.token = self.tokens["admin"]
        self.process = None

    def new_token(self, name, role):
        """A token of somebody."""
        told = self.run("token", "new", name, "--role", role, "--config", self.config, "--jobs", self.jobs)
        return told.split()[-1]

    def run(self, *arguments):
        """Runs a command of the program to its good end; what it says."""
        return subprocess.run([self.opilio, *arguments], check=True, capture_output=True, text=True).stdout

    def start(self):
        command = [self.opilio, "serve", "--config", self.config, "--jobs", self.jobs, "--listen", self.listen]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        # It says where it is as soon as it answers.
        self.address = self.process.stdout.readline().strip()
        if not self.address.startswith("http"):
            raise SystemExit(f"the daemon does not start; see {self.log}")
        self.listen = self.address.split("/")[2]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def ask(self, method, path, body=None, headers=()):
        """Asks the API without a browser."""
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
        """Opens a page of the console in a browser that nobody has signed in with yet."""
        page.goto(self.address + path)
        page.get_by_label("Token").fill(token or self.token)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("dialog").wait_for(state="detached")

    def multiply(self, job, names):
        """Copies of a job at rest, without the store that each would have."""
        origin = os.path.join(self.jobs, job)
        for name in names:
            copy = os.path.join(self.jobs, name)
            os.mkdir(copy)
            for file in AT_REST:
                if file != "job.json" and os.path.exists(os.path.join(origin, file)):
                    shutil.copy(os.path.join(origin, file), copy)
            # What makes a folder a job comes last, as when the program makes one.
            with open(os.path.join(origin, "job.json")) as file:
                made = json.load(file)
            with open(os.path.join(copy, "job.json"), "w") as file:
                json.dump({**made, "name": name}, file)

    def end(self):
        """Ends the jobs that crawl as well, which go on without the daemon."""
        if self.process.poll() is not None:
            self.start()
        # There may be more jobs than one page has, and few of them crawl.
        for state in ("running", "pausing", "paused"):
            for job in self.ask("GET", f"jobs?state={state}")["jobs"]:
                self.ask("POST", f"jobs/{job['name']}/stop")
        self.stop()

    def of_job(self, page="", job=JOB):
        return f"{self.address}#/jobs/{job}{'/' + page if page else ''}"


@contextlib.contextmanager
def opened(browser, faults, expects=(), **options):
    """A page whose errors are faults, but for those that are expected."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(180000)

    def hear(kind, text):
        if not any(re.search(expected, text) for expected in expects):
            faults.append(f"{kind}: {text[:300]}")

    page.on("console", lambda message: hear("console", message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: hear("error", str(error)))
    try:
        yield page
    finally:
        context.close()
