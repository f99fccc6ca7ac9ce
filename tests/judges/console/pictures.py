"""Takes the pictures of docs/CONSOLE.md, with a daemon that crawls a web on loopback.

usage: pictures.py OPILIO CHROMIUM DOCS

It needs Playwright, as the console judge does. After `cargo xtask judges console`, `target/judges/venv/bin/python` has it.
"""

import http.server
import itertools
import sys
import tempfile
import threading
import urllib.parse

from playwright.sync_api import expect, sync_playwright

import daemon

WIDE = {"width": 1280, "height": 860}
HOSTS = ["www.museum.localhost", "news.museum.localhost", "shop.museum.localhost"]
NEWS = (
    daemon.PROFILE
    + """
[dns]
hosts = { "*.localhost" = "127.0.0.1" }

[fetch]
allow-addresses = ["loopback"]
"""
)
MUSEUM = """# As the museum asked
extends = "snapshot"
workers = 6 # few

[stacks]
pre-fetch = ["ip-set"]

[plugins.ip-set]
component = "builtin:ip-set"

[plugins.ip-set.settings]
addresses = ["192.0.2.0/24", "198.51.100.7"]
"""


class Site(http.server.BaseHTTPRequestHandler):
    """A web with forty pages on each host. Every fifth page changes at each visit."""

    visits = itertools.count()

    def do_GET(self):
        name = self.path.strip("/").removesuffix(".html")
        number = 0 if name == "" else int(name) if name.isdigit() and int(name) < 40 else None
        if number is None:
            self.send_error(404)
            return
        links = "".join(f'<a href="/{(number * 7 + step) % 40}.html">page</a> ' for step in range(12))
        others = "".join(f'<a href="http://{host}:{self.server.server_port}/">{host}</a> ' for host in HOSTS)
        news = f"<p>News {next(self.visits)}</p>" if number % 5 == 0 else ""
        text = f"<title>Page {number}</title><p>{'A sentence about an object of the museum. ' * (5 + 3 * number)}</p>{news}{links}{others}"
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    opilio, chromium, docs = sys.argv[1:]
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    seed = f"http://{HOSTS[0]}:{web.server_port}/"
    with tempfile.TemporaryDirectory() as home:
        served = daemon.Daemon(opilio, home)
        for name, text in [("daily", NEWS), ("once", NEWS.replace('"revisit"', '"snapshot"')), ("museum", MUSEUM)]:
            file = f"{home}/{name}.toml"
            with open(file, "w") as profile:
                profile.write(text)
            served.run("profile", "save", file, "--config", served.config, "--jobs", served.jobs)
        served.start()
        try:
            for job, profile, start in [
                ("news", "daily", True),
                ("museum-2026-11", "once", True),
                ("elections", "daily", True),
                ("newspapers", "once", False),
            ]:
                served.ask("POST", "jobs", {"name": job, "profile": profile, "seeds": [seed], "start": start})
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                take(browser, served, seed, docs)
                browser.close()
        finally:
            served.end()
            web.shutdown()


def take(browser, served, seed, docs):
    page = browser.new_page(viewport=WIDE)
    page.set_default_timeout(180000)
    served.sign_in(page)
    # The crawl runs for two minutes, so that charts and history have data.
    page.goto(served.job_address())
    expect(page.get_by_text("% found a change")).to_be_visible()
    page.wait_for_timeout(120000)
    served.ask("POST", "jobs/elections/pause")
    page.screenshot(path=f"{docs}/console-job.png")
    page.goto(f"{served.address}#/")
    for job, state in [("elections", "paused"), ("museum-2026-11", "finished"), ("newspapers", "new")]:
        expect(page.get_by_role("row").filter(has=page.get_by_role("link", name=job))).to_contain_text(state)
    page.screenshot(path=f"{docs}/console-jobs.png", clip={"x": 0, "y": 0, "width": 1280, "height": 420})
    page.goto(served.job_address(f"uri?uri={urllib.parse.quote(seed, safe='')}"))
    expect(page.get_by_role("heading", name="Visits")).to_be_visible()
    page.screenshot(path=f"{docs}/console-uri.png")
    page.goto(f"{served.address}#/profiles/museum")
    plugin = page.locator("details.plugin-settings", has=page.locator("summary", has_text="ip-set"))
    plugin.evaluate("it => { for (let at = it; at; at = at.parentElement.closest('details')) at.open = true; }")
    plugin.scroll_into_view_if_needed()
    expect(page.get_by_text("The decision on servers at these addresses.")).to_be_visible()
    page.screenshot(path=f"{docs}/console-profile.png")


if __name__ == "__main__":
    main()
