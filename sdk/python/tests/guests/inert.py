"""Looks for a way out of the sandbox and reports what it found."""

import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from opilio_plugin import Document, Extractor, Link


def refused(work: Callable[[], Any]) -> str:
    try:
        return f"got {work()!r}"
    except Exception:
        return "refused"


class Inert(Extractor):
    name = "inert"
    summary = "Looks for a way out, for tests."

    def extract(self, document: Document) -> list[Link]:
        begin = time.time()
        time.sleep(0.1)
        facts = {
            "clock": time.time() - begin,
            "date": datetime.now(UTC).isoformat(),
            "random": random.random(),
            "secret": os.urandom(4).hex(),
            "hash": hash("a text"),
            "environment": sorted(set(os.environ) - {"PYTHONUNBUFFERED", "PYTHONHOME", "PYTHONPATH", "PYTHONHASHSEED"}),
            "arguments": len(sys.argv[1:]),
            "input": repr(sys.stdin.read()),
            "file": refused(lambda: open("/etc/passwd").read()),
            "own-file": refused(lambda: open("made", "w")),
            "folder": refused(lambda: os.listdir("/")),
            "socket": refused(lambda: socket.create_connection(("127.0.0.1", 80))),
            "name": refused(lambda: socket.getaddrinfo("example.org", 80)),
            "web": refused(lambda: urllib.request.urlopen("http://127.0.0.1/")),
            "program": refused(lambda: subprocess.run(["true"])),
        }
        return [Link(name, context=str(value)) for name, value in facts.items()]


plugins = [Inert]
