"""Runs crawls that hand their files over to an S3 server (moto), and checks the stored files with boto3 and warcio.

usage: handover.py OPILIO FOLDER SEED PAGES HALF LAST

- OPILIO: the program
- FOLDER: empty folder for the jobs
- SEED: page from which PAGES pages are reached, among them /big.bin, which is too large for one request
- HALF, LAST: pages that the web holds back after `hold`, until they are opened

The server checks signatures. Crawls reach it through a proxy, which this script takes down and up again.
"""

import hashlib
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import boto3
from botocore.config import Config
from warcio.archiveiterator import ArchiveIterator

PATIENCE_S = 300
BUCKET = "web-archive"
# The ETag of a file that was uploaded in parts (of 8 MiB) ends in a hyphen and the number of parts.
PARTS_OF = "-"

opilio, folder, seed, pages = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
half, last = sys.argv[5:]


def expect(condition, what):
    if not condition:
        sys.exit(f"handover: {what}")


def wait_until(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        expect(time.monotonic() < end, f"timeout after {PATIENCE_S} s: waited until {what}")
        time.sleep(0.05)


def control_web(path):
    """Requests a control path of the web: `hold` holds pages back, `open/PAGE` opens one."""
    # Python uses the system's resolver, and not every system resolves names below .localhost.
    host = seed.split("/")[2]
    request = urllib.request.Request(f"http://127.0.0.1:{host.split(':')[1]}/{path}", headers={"Host": host})
    urllib.request.urlopen(request).read()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Proxy:
    """A proxy that forwards connections to a port while it is up."""

    def __init__(self, target):
        self.target, self.port, self.listener, self.open = target, free_port(), None, []

    def up(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()

    def down(self):
        """Refuses new connections and breaks existing ones."""
        # shutdown() wakes a thread that is blocked in accept(); close() does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for side in self.open:
            try:
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.open = []

    def accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.target))
            self.open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass


server_port = free_port()
server = subprocess.Popen(
    [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(server_port)],
    stdout=subprocess.DEVNULL,
    stderr=open(folder / "moto.log", "w"),
)
direct = f"http://127.0.0.1:{server_port}"


def reachable():
    try:
        return urllib.request.urlopen(f"{direct}/moto-api/", timeout=60).status == 200
    except OSError:
        return False


def client(service, keys):
    return boto3.client(
        service,
        endpoint_url=direct,
        region_name="eu-central-1",
        aws_access_key_id=keys[0],
        aws_secret_access_key=keys[1],
        config=Config(s3={"addressing_style": "path"}),
    )


def judge():
    wait_until("the server answers", reachable)
    iam = client("iam", ("setup", "setup"))
    iam.create_user(UserName="opilio")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}
    iam.put_user_policy(UserName="opilio", PolicyName="all", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName="opilio")["AccessKey"]
    keys = (key["AccessKeyId"], key["SecretAccessKey"])
    client("s3", ("setup", "setup")).create_bucket(
        Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"}
    )
    # From now on the server accepts only requests that are signed with the key.
    request = urllib.request.Request(f"{direct}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"}, method="POST")
    urllib.request.urlopen(request).read()
    s3 = client("s3", keys)
    proxy = Proxy(server_port)
    proxy.up()
    wrong_key(s3, keys, proxy)
    outage(s3, keys, proxy)
    sudden_death(s3, keys, proxy)
    lost_machine(s3, keys, proxy)


def profile(name, proxy, size_max, store):
    path = folder / f"{name}.toml"
    path.write_text(
        f"""name = "{name}"
workers = 2
politeness = {{ delay-factor = 0.0, min-delay = "10ms", max-delay = "10ms" }}
fetch = {{ allow-addresses = ["loopback"], response-timeout = "10m" }}
alerts = {{ disk-warn = "none", disk-pause = "none" }}

[archive]
size-max = "{size_max}"

[archive.store]
url = "s3://{BUCKET}/crawls"
endpoint = "http://127.0.0.1:{proxy.port}"
region = "eu-central-1"
access-key-id = {{ env = "STORE_KEY" }}
secret-access-key = {{ env = "STORE_SECRET" }}
retry-min = "300ms"
retry-max = "1s"
finish-within = "60s"
{store}
"""
    )
    return path


def environment(keys):
    return {**os.environ, "STORE_KEY": keys[0], "STORE_SECRET": keys[1]}


def run(arguments, keys):
    command = [opilio, *arguments]
    return subprocess.run(command, cwd=folder, env=environment(keys), capture_output=True, text=True, timeout=PATIENCE_S * 3)


def start(name, keys):
    command = [opilio, "crawl", f"{name}.toml", "--seed", seed, "--job", name, "--quiet"]
    return subprocess.Popen(command, cwd=folder, env=environment(keys))


def stored(s3, name):
    """The stored objects of a job: sizes by key, relative to the job's folder in the bucket."""
    pages_of = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=f"crawls/{name}/")
    return {it["Key"].removeprefix(f"crawls/{name}/"): it["Size"] for page in pages_of for it in page.get("Contents", [])}


def archives(s3, name):
    return [key for key in stored(s3, name) if key.endswith(".warc.gz")]


def read_back(s3, name):
    """Downloads the stored files of a job and compares them with their metadata and local copies. Returns the captured URIs."""
    captured = set()
    for key in stored(s3, name):
        answer = s3.get_object(Bucket=BUCKET, Key=f"crawls/{name}/{key}")
        content = answer["Body"].read()
        digest = hashlib.sha256(content).hexdigest()
        expect(answer["Metadata"].get("sha256") == digest, f"{key} does not have the digest in its metadata")
        local = folder / name / key
        # Local logs may be longer: commands append to them.
        is_copy = not local.exists() or local.read_bytes().startswith(content)
        expect(is_copy and (key.startswith("logs/") or not local.exists() or local.stat().st_size == len(content)), f"{key} differs from the job's file")
        if key.endswith(".warc.gz"):
            for record in ArchiveIterator(io.BytesIO(content), check_digests="raise"):
                record.content_stream().read()
                if record.rec_type == "response":
                    captured.add(record.rec_headers.get_header("WARC-Target-URI"))
    return captured


def all_pages(s3, name):
    captured = {uri for uri in read_back(s3, name) if uri.startswith("http") and not uri.endswith("/robots.txt")}
    expect(len(captured) == pages, f"{name}: {len(captured)} pages are stored, not {pages}")


def listed(name, keys):
    lines = run(["job", "handover", name, "--list", "--json"], keys).stdout.splitlines()
    return [json.loads(line) for line in lines]


def wrong_key(s3, keys, proxy):
    """With a wrong key nothing is stored, but the crawl finishes. With the right key its files are handed over."""
    profile("wrong-key", proxy, "64MiB", "read-back = true")
    wrong = (keys[0], "wrong")
    expect(start("wrong-key", wrong).wait() == 6, "the crawl with a wrong key does not report files that are not handed over")
    expect(stored(s3, "wrong-key") == {}, "files are stored with a wrong key")
    alerts = run(["job", "alerts", "wrong-key", "--json"], wrong).stdout
    expect("check the keys" in alerts, f"no alert names the wrong key: {alerts}")
    expect(run(["job", "handover", "wrong-key"], wrong).returncode == 1, "a hand-over with a wrong key succeeds")
    done = run(["job", "handover", "wrong-key"], keys)
    expect(done.returncode == 0, f"the files are not handed over: {done}")
    all_pages(s3, "wrong-key")
    tags = [s3.head_object(Bucket=BUCKET, Key=f"crawls/wrong-key/{key}")["ETag"] for key in archives(s3, "wrong-key")]
    expect(any(PARTS_OF in tag for tag in tags), f"no file was sent in parts: {tags}")
    kinds = {key.split("/")[0] for key in stored(s3, "wrong-key")}
    expect(kinds == {"warcs", "logs", "reports"}, f"stored are {kinds}")
    before = {key: s3.head_object(Bucket=BUCKET, Key=f"crawls/wrong-key/{key}")["LastModified"] for key in archives(s3, "wrong-key")}
    time.sleep(1)
    expect(run(["job", "handover", "wrong-key"], keys).returncode == 0, "a second hand-over fails")
    after = {key: s3.head_object(Bucket=BUCKET, Key=f"crawls/wrong-key/{key}")["LastModified"] for key in archives(s3, "wrong-key")}
    expect(before == after, "archive files are sent a second time")
    print(f"wrong key: nothing stored; then {len(stored(s3, 'wrong-key'))} files, one in parts, read back by warcio")


def outage(s3, keys, proxy):
    """The crawl continues while the store is unreachable. Local copies are deleted only after it is reachable again."""
    profile("outage", proxy, "64KiB", "delete-local = true")
    control_web("hold")
    crawl = start("outage", keys)
    wait_until("files are stored", lambda: len(archives(s3, "outage")) >= 2)
    proxy.down()
    control_web(f"open/{half}")
    log = folder / "outage/logs/job.log"
    wait_until("there is an alert", lambda: "alert handover s3://" in log.read_text())
    # During the outage local files are kept, and the crawl writes more of them.
    wait_until("several files wait", lambda: len(list((folder / "outage/warcs").glob("*.warc.gz"))) > 2)
    expect(crawl.poll() is None, "the crawl ended during the outage")
    proxy.up()
    control_web(f"open/{last}")
    expect(crawl.wait() == 0, "the crawl failed")
    expect(list((folder / "outage/warcs").glob("*.warc.gz")) == [], "local copies are left")
    expect(all(file["state"] != "waiting" for file in listed("outage", keys)), "files still wait for their hand-over")
    cleared = (folder / "outage/logs/alerts.log").read_text()
    expect("cleared" in cleared, f"the alert was not cleared: {cleared}")
    all_pages(s3, "outage")
    print(f"outage: {len(archives(s3, 'outage'))} files stored, none left in the job")


def sudden_death(s3, keys, proxy):
    """A crawl is killed twice. When it is resumed, it stores the files that it had closed; no page is missing."""
    profile("death", proxy, "64KiB", "delete-local = true")
    control_web("hold")
    for death, opened in ((1, half), (2, last)):
        crawl = start("death", keys)
        enough = len(archives(s3, "death")) + 2
        wait_until("two more files are stored", lambda: len(archives(s3, "death")) >= enough or crawl.poll() is not None)
        expect(crawl.poll() is None, f"the crawl ended before death {death}")
        crawl.send_signal(signal.SIGKILL)
        crawl.wait()
        control_web(f"open/{opened}")
    expect(start("death", keys).wait() == 0, "the crawl failed")
    expect(run(["job", "verify", "death"], keys).returncode == 0, "the job is not consistent")
    expect(list((folder / "death/warcs").glob("*.warc.gz*")) == [], "local copies are left")
    all_pages(s3, "death")
    print(f"sudden death: {len(archives(s3, 'death'))} files stored after 2 deaths")


def lost_machine(s3, keys, proxy):
    """The machine of a part of a shared crawl is lost. The part resumes from its snapshot in S3; no page is missing."""
    program = os.environ.get("OPILIO_NATS_SERVER") or shutil.which("nats-server")
    if program is None:
        print("lost machine: skipped, because nats-server was not found")
        return
    port = free_port()
    command = [program, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", str(folder / "nats")]
    nats = subprocess.Popen(command, stderr=open(folder / "nats.log", "w"))
    try:
        wait_until("NATS is ready", lambda: "Server is ready" in (folder / "nats.log").read_text())
        profile("lost", proxy, "64KiB", '[checkpoint]\npublish-every = "1s"')
        for node in ("a", "b"):
            cluster = f'[cluster]\nservers = ["127.0.0.1:{port}"]\nnode = "{node}"\ntime-to-live = "2s"\n'
            (folder / f"{node}-node.toml").write_text(cluster)

        def crawl(node, job, *more):
            shared = ["--cluster-job", "lost", "--nodes", "a", "--config", f"{node}-node.toml", *more]
            command = [opilio, "crawl", "lost.toml", "--seed", seed, "--job", job, "--quiet", *shared]
            return subprocess.Popen(command, cwd=folder, env=environment(keys))

        def snapshots():
            return [key for key in stored(s3, "lost") if key.endswith("/manifest.json")]

        control_web("hold")
        lost = crawl("a", "lost")
        wait_until("a snapshot and its archive files are in S3", lambda: snapshots() and len(archives(s3, "lost")) >= 2)
        lost.send_signal(signal.SIGKILL)
        lost.wait()
        shutil.rmtree(folder / "lost")
        control_web(f"open/{half}")
        control_web(f"open/{last}")
        expect(crawl("b", "taken", "--take-over", "a").wait() == 0, "the crawl failed after the takeover")
        captured = set()
        for key in archives(s3, "lost"):
            content = s3.get_object(Bucket=BUCKET, Key=f"crawls/lost/{key}")["Body"].read()
            for record in ArchiveIterator(io.BytesIO(content), check_digests="raise"):
                record.content_stream().read()
                uri = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == "response" and uri.startswith("http") and not uri.endswith("/robots.txt"):
                    captured.add(uri)
        expect(len(captured) == pages, f"{len(captured)} pages are stored after a takeover, not {pages}")
        folders = {key.split("/")[0] for key in archives(s3, "lost")}
        expect(folders == {"a-1", "a-2"}, f"archive files are in {folders}")
        expect(len(snapshots()) == 1, f"replaced snapshots were not deleted: {snapshots()}")
        print(f"lost machine: resumed from S3, {len(captured)} pages in {len(archives(s3, 'lost'))} files of two machines")
    finally:
        nats.terminate()
        nats.wait()


try:
    judge()
finally:
    server.terminate()
    server.wait()
