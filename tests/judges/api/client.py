"""Tests the client that openapi-python-client generates: lists the jobs, starts one, and reads statistics and files.

usage: client.py URL TOKEN CRAWLED RESTING

A process runs the job CRAWLED. No process runs the job RESTING.
"""

import sys

from opilio_client import AuthenticatedClient
from opilio_client.api.files import download_cdxj, download_file, list_files
from opilio_client.api.jobs import list_jobs, make_job, show_job, start_job, stop_job
from opilio_client.api.watch import show_statistics, show_status
from opilio_client.models import FileKind, JobState, Making, Problem

url, token, crawled, resting = sys.argv[1:]
client = AuthenticatedClient(url, token, raise_on_unexpected_status=True)


def expect(condition, what):
    if not condition:
        sys.exit(f"client.py: {what}")


jobs = list_jobs.sync(client=client)
names = [job.name for job in jobs.jobs]
expect(names == sorted([crawled, resting]) and jobs.total == 2, f"the jobs are {jobs}")
refused = make_job.sync(client=client, body=Making(name="made", profile="no-such-profile"))
expect(isinstance(refused, Problem) and refused.status == 404, f"no profile of this name: {refused}")
started = start_job.sync_detailed(resting, client=client)
expect(started.status_code == 202 and "will start" in started.parsed.result, f"starting: {started}")
again = start_job.sync(resting, client=client)
expect(isinstance(again, Problem) and again.status == 409, f"starting it again: {again}")
stopped = stop_job.sync(resting, client=client)
expect("will not start" in stopped.result, f"stopping: {stopped}")
job = show_job.sync(crawled, client=client)
expect(job.overview.name == crawled and job.statistics.queued >= 0, f"the job: {job}")
figures, status = show_statistics.sync(crawled, client=client), show_status.sync(crawled, client=client)
expect(figures.to_dict() == status.statistics.to_dict(), f"figures: {figures} and {status.statistics}")
expect(status.overview.state in (JobState.PAUSED, JobState.RUNNING, JobState.STARTING), f"its state: {status.overview}")
files = list_files.sync(crawled, client=client, kind=FileKind.LOG)
log = next(file for file in files.files if file.name == "crawl.log")
expect(log.is_open, f"the crawl writes its log: {log}")
file = next(file for file in files.files if file.size > 10)
part = download_file.sync_detailed(crawled, FileKind.LOG, file.name, client=client, range_="bytes=3-7")
whole = download_file.sync(crawled, FileKind.LOG, file.name, client=client).payload.read()
expect(part.status_code == 206 and part.content == whole[3:8], f"a part of {file.name}: {part}")
expect(download_cdxj.sync(resting, client=client) == "", "a job without an archive has an empty index")
print(f"client.py: {len(names)} jobs, {len(files.files)} logs, {len(whole)} bytes of {file.name}")
