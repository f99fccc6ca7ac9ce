"""Tries to use the clock, randomness, files, the network and programs, and reports the results."""

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


def attempt(work: Callable[[], Any]) -> str:
    try:
        return f"got {work()!r}"
    except Exception:
        return "refused"


class Inert(Extractor):
    name = "inert"
    summary = "Tries to leave the sandbox, for tests."

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
            "file": attempt(lambda: open("/etc/passwd").read()),
            "own-file": attempt(lambda: open("made", "w")),
            "folder": attempt(lambda: os.listdir("/")),
            "socket": attempt(lambda: socket.create_connection(("127.0.0.1", 80))),
            "name": attempt(lambda: socket.getaddrinfo("example.org", 80)),
            "web": attempt(lambda: urllib.request.urlopen("http://127.0.0.1/")),
            "program": attempt(lambda: subprocess.run(["true"])),
        }
        return [Link(name, context=str(value)) for name, value in facts.items()]


plugins = [Inert]
