"""Whole lives of jobs by way of hapy-heritrix, a client of Heritrix 3: made, configured, built, launched, paused, ended, torn down
and copied, their logs and reports read, and what is not done here refused.

life.py HAPY URL USER PASSWORD CXML JOBS

HAPY is the folder of the package, translated to Python 3; CXML the configuration of the jobs; JOBS the folder of jobs.
"""

import os
import shutil
import sys
import time
import warnings
from xml.etree import ElementTree

import requests

# The daemon's certificate is its own, as that of Heritrix is.
warnings.filterwarnings("ignore")
folder, url, user, password, cxml, jobs = sys.argv[1:]
sys.path.insert(0, folder)

from hapy import Hapy, HapyException  # noqa: E402

PATIENCE_S = 300

hapy = Hapy(url, username=user, password=password)


def expect(is_so, what):
    if not is_so:
        sys.exit(f"hapy-heritrix: {what}")


def job(name):
    """What get_job_info asks for: its own reading of it needs Python 2."""
    return ElementTree.fromstring(hapy._http_get(f"{hapy.base_url}/job/{name}").content)


def described(name):
    return job(name).findtext("statusDescription")


def wait_for(name, description):
    end = time.monotonic() + PATIENCE_S
    while described(name) != description:
        expect(time.monotonic() < end, f"{name} is {described(name)!r}, not {description!r}")
        time.sleep(0.1)


def refused(status, action, *arguments):
    try:
        action(*arguments)
    except HapyException:
        got = hapy.lastresponse.status_code
        expect(got == status, f"{action.__name__}{arguments} is answered by {got}, not {status}")
        kind = hapy.lastresponse.headers["content-type"]
        expect(kind == "application/problem+json", f"{action.__name__}{arguments} is refused in {kind}")
        return
    sys.exit(f"hapy-heritrix: {action.__name__}{arguments} is not refused")


def file(path, **headers):
    answer = requests.get(f"{hapy.base_url}/{path}", auth=hapy.auth, verify=False, headers=headers, timeout=PATIENCE_S)
    expect(answer.status_code in (200, 206), f"{path} is answered by {answer.status_code}")
    return answer


with open(cxml, "rb") as configuration:
    text = configuration.read()

# Created and configured.
first = "by-hapy"
hapy.create_job(first)
expect(described(first) == "Unbuilt", "a new job is not Unbuilt")
refused(409, hapy.create_job, first)
refused(422, hapy.create_job, "../outside")
place = job(first).findtext("primaryConfigUrl")
hapy._http_put(place, text)
expect(hapy._http_get(place).content == text, "the configuration is not what was put there")
refused(409, hapy.terminate_job, first)

# Built; torn down before it has begun, it can be built again.
hapy.build_job(first)
wait_for(first, "Ready")
hapy.teardown_job(first)
wait_for(first, "Unbuilt")
hapy.build_job(first)
wait_for(first, "Ready")

# Launched, which is paused, and let go.
hapy.launch_job(first)
wait_for(first, "Active: PAUSED")
refused(409, hapy.launch_job, first)
hapy.checkpoint_job(first)
hapy.unpause_job(first)
wait_for(first, "Finished: FINISHED")
novel = int(job(first).findtext("sizeTotalsReport/novelCount"))
expect(novel >= 2, f"only {novel} documents")
refused(403, hapy.execute_script, first, "groovy", "rawOut.println(1)")
refused(403, hapy.delete_job, first)

# Its files.
names = file(f"job/{first}/jobdir/").text.split()
for name in ["crawler-beans.cxml", "logs/crawl.log", "reports/crawl-report.txt"]:
    expect(name in names, f"{name} is not among {names}")
log = file(f"job/{first}/jobdir/logs/crawl.log")
expect(len(log.text.splitlines()) >= 2, f"crawl.log: {log.text}")
part = file(f"job/{first}/jobdir/logs/crawl.log", Range="bytes=0-9")
expect(part.status_code == 206 and part.text == log.text[:10], f"ten bytes of crawl.log: {part.text}")
for name in names:
    if name.startswith("reports/") and name.endswith(".txt"):
        expect(file(f"job/{first}/jobdir/{name}").text, f"{name} is empty")

# In JSON as in XML.
said = file(f"job/{first}", Accept="application/json").json()
expect(said["statusDescription"] == described(first), f"in JSON it is {said}")
engine = file("", Accept="application/json").json()
in_xml = ElementTree.fromstring(hapy._http_get(hapy.base_url).content)
listed = [one.findtext("shortName") for one in in_xml.iter("value") if one.find("shortName") is not None]
expect(first in listed, f"{first} is not among {listed}")
expect(len(engine["jobs"]) == len(listed), f"in JSON there are {len(engine['jobs'])} jobs, in XML {len(listed)}")

hapy.teardown_job(first)
wait_for(first, "Unbuilt")

# A profile is copied, not built; its copy is launched without being built first, and ended.
hapy.copy_job(first, "pattern", as_profile=True)
refused(409, hapy.build_job, "pattern")
second = "by-hapy-again"
hapy.copy_job("pattern", second)
hapy.launch_job(second)
wait_for(second, "Active: PAUSED")
hapy.unpause_job(second)
wait_for(second, "Finished: FINISHED")
hapy.teardown_job(second)
third = "by-hapy-ended"
hapy.copy_job("pattern", third)
hapy.launch_job(third)
wait_for(third, "Active: PAUSED")
hapy.pause_job(third)
hapy.terminate_job(third)
wait_for(third, "Finished: ABORTED")
hapy.teardown_job(third)
wait_for(third, "Unbuilt")

# A folder that somebody has put among the jobs.
put = os.path.join(jobs, "by-hand")
os.mkdir(put)
shutil.copy(cxml, os.path.join(put, "crawler-beans.cxml"))
hapy.rescan_job_directory()
hapy._http_post(hapy.base_url, {"action": "add", "addpath": put}, 303)
refused(403, hapy.add_job_directory, "/etc")
refused(403, hapy.add_job_directory, "/nowhere")
hapy.launch_job("by-hand")
wait_for("by-hand", "Active: PAUSED")
hapy.terminate_job("by-hand")
wait_for("by-hand", "Finished: ABORTED")

other = Hapy(url, username=user, password=password + "x")
try:
    other._http_get(other.base_url)
except HapyException:
    expect(other.lastresponse.status_code == 401, "a wrong password is not answered by 401")
else:
    sys.exit("hapy-heritrix: a wrong password is let in")
print("hapy-heritrix: jobs were made, built, launched, ended and copied")
