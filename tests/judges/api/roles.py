"""What each role may do over the API, asked of every operation that its description has.

roles.py URL JOB AUDIT VIEWER OPERATOR ADMIN

JOB is a job that operations are about, AUDIT the daemon's audit log; the rest are tokens.
"""

import json
import re
import sys

import requests

url, job, audit, viewer, operator, admin = sys.argv[1:]
# What an operator may not: these need a request that is otherwise good.
ADMIN = [
    ("GET", "/api/v1/audit", None),
    ("DELETE", f"/api/v1/jobs/{job}", None),
    ("DELETE", "/api/v1/profiles/x", None),
    ("POST", f"/api/v1/jobs/{job}/plugins/html/replace", {"component": "builtin:html"}),
]
# Questions about a text, which change nothing.
QUESTIONS = {"/api/v1/profiles/check", "/api/v1/profiles/form"}
PATIENCE_S = 180


def ask(method, path, token=None, body=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # A stream has no end: only what it begins with is looked at.
    with requests.request(method, url + path, headers=headers, json=body, timeout=PATIENCE_S, stream=True) as answer:
        is_problem = answer.headers.get("content-type") == "application/problem+json"
        return answer.status_code, json.loads(answer.content) if is_problem else None


def expect(got, status, what):
    code, problem = got
    if code != status or problem is None or problem.get("status") != status:
        sys.exit(f"roles: {what}: {code} {problem}, not {status} and a problem document")


description = requests.get(f"{url}/api/v1/openapi.json", headers={"Authorization": f"Bearer {viewer}"}, timeout=PATIENCE_S).json()
asked = 0
for template, item in description["paths"].items():
    path = re.sub(r"\{job\}", job, template)
    path = re.sub(r"\{\w+\}", "x", path)
    for method in item.keys() & {"get", "post", "put", "patch", "delete"}:
        # As for signing in.
        is_open = {} in item[method].get("security", [])
        method = method.upper()
        what = f"{method} {path}"
        if is_open:
            code, problem = ask(method, path)
            if code == 401:
                sys.exit(f"roles: {what} is described as open to everybody: {problem}")
            continue
        expect(ask(method, path), 401, f"{what} of nobody")
        if method != "GET" and template not in QUESTIONS:
            expect(ask(method, path, viewer, {}), 403, f"{what} of a viewer")
        asked += 1
if asked < 50:
    sys.exit(f"roles: the description has {asked} operations alone")
for method, path, body in ADMIN:
    expect(ask(method, path, operator, body), 403, f"{method} {path} of an operator")

code, _ = ask("GET", "/api/v1/audit", admin)
if code != 200:
    sys.exit(f"roles: an admin may not read the audit log: {code}")
with open(audit) as file:
    entries = [json.loads(line) for line in file]
of_viewer = [entry for entry in entries if entry["user"] == "viewer"]
done = [entry for entry in of_viewer if entry["status"] < 400]
if done or not of_viewer:
    sys.exit(f"roles: of {len(of_viewer)} changes that the viewer wanted these were made: {done}")
print(f"roles: {asked} operations are closed to nobody, and those that change something to viewers, {len(of_viewer)} times")
