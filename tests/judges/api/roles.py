"""Checks the permissions of each role for every operation in the API's description.

usage: roles.py URL JOB AUDIT VIEWER OPERATOR ADMIN

JOB is the job for the operations, AUDIT the daemon's audit log. VIEWER, OPERATOR and ADMIN are tokens.
"""

import json
import re
import sys

import requests

url, job, audit, viewer, operator, admin = sys.argv[1:]
# Operations that operators may not use. Their requests are valid otherwise.
ADMIN = [
    ("GET", "/api/v1/audit", None),
    ("DELETE", f"/api/v1/jobs/{job}", None),
    ("DELETE", "/api/v1/profiles/x", None),
    ("POST", f"/api/v1/jobs/{job}/plugins/html/replace", {"component": "builtin:html"}),
]
# POST operations that check a text and change nothing.
QUESTIONS = {"/api/v1/profiles/check", "/api/v1/profiles/form"}
PATIENCE_S = 180


def ask(method, path, token=None, body=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # A stream has no end, so its body is not read.
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
        # Operations without a token, such as signing in.
        is_open = {} in item[method].get("security", [])
        method = method.upper()
        what = f"{method} {path}"
        if is_open:
            code, problem = ask(method, path)
            if code == 401:
                sys.exit(f"roles: {what} needs no token by its description, but was refused: {problem}")
            continue
        expect(ask(method, path), 401, f"{what} without a token")
        if method != "GET" and template not in QUESTIONS:
            expect(ask(method, path, viewer, {}), 403, f"{what} by a viewer")
        asked += 1
if asked < 50:
    sys.exit(f"roles: the description has only {asked} operations")
for method, path, body in ADMIN:
    expect(ask(method, path, operator, body), 403, f"{method} {path} by an operator")

code, _ = ask("GET", "/api/v1/audit", admin)
if code != 200:
    sys.exit(f"roles: an admin cannot read the audit log: status {code}")
with open(audit) as file:
    entries = [json.loads(line) for line in file]
of_viewer = [entry for entry in entries if entry["user"] == "viewer"]
done = [entry for entry in of_viewer if entry["status"] < 400]
if done or not of_viewer:
    sys.exit(f"roles: the audit log has {len(of_viewer)} changes requested by the viewer, of which these succeeded: {done}")
print(f"roles: {asked} operations need a token; {len(of_viewer)} requests for changes were refused to the viewer")
