"""Tests the Heritrix API with hapy-heritrix, a client of Heritrix 3. Jobs are created, configured, built, launched, paused, ended,
torn down and copied; their logs and reports are read; unsupported actions are refused.

usage: life.py HAPY URL USER PASSWORD CXML JOBS

HAPY is the folder of the package, translated to Python 3. CXML is the configuration of the jobs. JOBS is the folder of jobs.
"""

import os
import shutil
import sys
import time
import warnings
from xml.etree import ElementTree

import requests

# The daemon has a self-signed certificate, as Heritrix has.
warnings.filterwarnings("ignore")
folder, url, user, password, cxml, jobs = sys.argv[1:]
sys.path.insert(0, folder)

from hapy import Hapy, HapyException  # noqa: E402

PATIENCE_S = 300

hapy = Hapy(url, username=user, password=password)


def expect(condition, what):
    if not condition:
        sys.exit(f"hapy-heritrix: {what}")


def job(name):
    """The job's description, as XML. The client's own get_job_info parses it only with Python 2."""
    return ElementTree.fromstring(hapy._http_get(f"{hapy.base_url}/job/{name}").content)


def status_of(name):
    return job(name).findtext("statusDescription")


def wait_for(name, description):
    end = time.monotonic() + PATIENCE_S
    while status_of(name) != description:
        expect(time.monotonic() < end, f"{name} is {status_of(name)!r}, not {description!r}")
        time.sleep(0.1)


def expect_refused(status, action, *arguments):
    try:
        action(*arguments)
    except HapyException:
        got = hapy.lastresponse.status_code
        expect(got == status, f"{action.__name__}{arguments} has status {got}, not {status}")
        kind = hapy.lastresponse.headers["content-type"]
        expect(kind == "application/problem+json", f"{action.__name__}{arguments} is refused with the media type {kind}")
        return
    sys.exit(f"hapy-heritrix: {action.__name__}{arguments} is not refused")


def file(path, **headers):
    answer = requests.get(f"{hapy.base_url}/{path}", auth=hapy.auth, verify=False, headers=headers, timeout=PATIENCE_S)
    expect(answer.status_code in (200, 206), f"{path} has status {answer.status_code}")
    return answer


with open(cxml, "rb") as configuration:
    text = configuration.read()

# A job is created and configured.
first = "by-hapy"
hapy.create_job(first)
expect(status_of(first) == "Unbuilt", "a new job is not Unbuilt")
expect_refused(409, hapy.create_job, first)
expect_refused(422, hapy.create_job, "../outside")
place = job(first).findtext("primaryConfigUrl")
hapy._http_put(place, text)
expect(hapy._http_get(place).content == text, "the configuration is not what was put there")
expect_refused(409, hapy.terminate_job, first)

# It is built. After a teardown before the launch it can be built again.
hapy.build_job(first)
wait_for(first, "Ready")
hapy.teardown_job(first)
wait_for(first, "Unbuilt")
hapy.build_job(first)
wait_for(first, "Ready")

# It is launched, which leaves it paused, and unpaused.
hapy.launch_job(first)
wait_for(first, "Active: PAUSED")
expect_refused(409, hapy.launch_job, first)
hapy.checkpoint_job(first)
hapy.unpause_job(first)
wait_for(first, "Finished: FINISHED")
novel = int(job(first).findtext("sizeTotalsReport/novelCount"))
expect(novel >= 2, f"only {novel} documents")
expect_refused(403, hapy.execute_script, first, "groovy", "rawOut.println(1)")
expect_refused(403, hapy.delete_job, first)

# Its files are read.
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

# JSON and XML have the same content.
in_json = file(f"job/{first}", Accept="application/json").json()
expect(in_json["statusDescription"] == status_of(first), f"in JSON it is {in_json}")
engine = file("", Accept="application/json").json()
in_xml = ElementTree.fromstring(hapy._http_get(hapy.base_url).content)
listed = [one.findtext("shortName") for one in in_xml.iter("value") if one.find("shortName") is not None]
expect(first in listed, f"{first} is not among {listed}")
expect(len(engine["jobs"]) == len(listed), f"in JSON there are {len(engine['jobs'])} jobs, in XML {len(listed)}")

hapy.teardown_job(first)
wait_for(first, "Unbuilt")

# A profile can be copied, but not built. Its copy is launched without a build, and ended.
hapy.copy_job(first, "pattern", as_profile=True)
expect_refused(409, hapy.build_job, "pattern")
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

# A folder that was put among the jobs by hand becomes a job.
put = os.path.join(jobs, "by-hand")
os.mkdir(put)
shutil.copy(cxml, os.path.join(put, "crawler-beans.cxml"))
hapy.rescan_job_directory()
hapy._http_post(hapy.base_url, {"action": "add", "addpath": put}, 303)
expect_refused(403, hapy.add_job_directory, "/etc")
expect_refused(403, hapy.add_job_directory, "/nowhere")
hapy.launch_job("by-hand")
wait_for("by-hand", "Active: PAUSED")
hapy.terminate_job("by-hand")
wait_for("by-hand", "Finished: ABORTED")

other = Hapy(url, username=user, password=password + "x")
try:
    other._http_get(other.base_url)
except HapyException:
    expect(other.lastresponse.status_code == 401, "a wrong password does not have status 401")
else:
    sys.exit("hapy-heritrix: a wrong password is accepted")
print("hapy-heritrix: jobs were made, built, launched, ended and copied")
