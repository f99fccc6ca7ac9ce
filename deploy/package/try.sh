#!/bin/bash
# Tests a package in a booted, clean root file system, which `cargo xtask package --try` sets up. Installs, starts, upgrades,
# removes and purges the package. /packages has two releases of it. Prints one line for each step that succeeded.
set -euo pipefail
kind=$1
config=/etc/opilio/opilio.toml

case $kind in
deb)
    add() { dpkg --install "$@"; }
    remove() { dpkg --remove opilio; }
    first=(/packages/opilio_*-1_*.deb) second=(/packages/next/opilio_*-2_*.deb)
    ;;
rpm)
    # The root file system is Debian's, and rpm does not know its packages, so dependencies cannot be checked here.
    add() { rpm --upgrade --nodeps "$@"; }
    remove() { rpm --erase opilio; }
    first=(/packages/opilio-*-1.*.rpm) second=(/packages/next/opilio-*-2.*.rpm)
    ;;
esac

passed() { echo "    $*"; }
fail() { echo "FAILED: $*"; exit 1; }
as_opilio() { (cd /var/lib/opilio && runuser -u opilio -- opilio "$@"); }
# Sends a request to the daemon and prints the response's status.
status() {
    exec 3<>/dev/tcp/127.0.0.1/8470 || return 1
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:8470\r\nConnection: close\r\n\r\n' "$1" >&3
    head -1 <&3 | cut -d' ' -f2
    exec 3>&-
}
ready() { [ "$(status /readyz 2>/dev/null || true)" = 200 ]; }
eventually() { for _ in $(seq 300); do "$@" && return; sleep 0.1; done; fail "not within 30 s: $*"; }
crawls() { pgrep --full 'opilio crawl' >/dev/null; }
no_crawl() { ! crawls; }

add "${first[@]}" > /tmp/install.log 2>&1 || { cat /tmp/install.log; fail "installation"; }
grep -q 'systemctl enable --now opilio' /tmp/install.log || fail "the package did not print the next step"
opilio --version
[ "$(stat -c %U:%a /var/lib/opilio)" = opilio:750 ] || fail "state folder: $(stat -c %U:%a /var/lib/opilio)"
for file in /usr/share/man/man1/opilio-job-status.1.gz /usr/share/bash-completion/completions/opilio \
    /usr/share/fish/vendor_completions.d/opilio.fish /usr/share/doc/opilio/third-party.txt.gz; do
    [ -e "$file" ] || fail "$file is missing"
done
# dpkg installs documentation in this root, and a manual page equals the program's output.
zcat /usr/share/man/man1/opilio.1.gz | cmp - <(opilio man) || fail "the manual page differs from the program's output"
passed "installed: program, manual pages, completions, user and folders"

systemctl is-active --quiet opilio && fail "the daemon started without a token"
as_opilio token new lena --role admin --config $config > /tmp/token
systemctl enable --now --quiet opilio
eventually ready
passed "started: the daemon is ready under the unit's restrictions"

cat > /var/lib/opilio/patient.toml <<'END'
name = "patient"
seeds = ["http://localhost:9/"]
[operator]
contact-url = "https://your.site/crawler"
[fetch]
allow-addresses = ["loopback"]
allow-ports = [9]
[alerts]
disk-warn = "none"
disk-pause = "none"
END
sed -i 's/^disk-free.*/disk-free = "none"/' $config
systemctl restart opilio
eventually ready
as_opilio job new jobs/patient --profile patient.toml >/dev/null
as_opilio job start jobs/patient >/dev/null
eventually crawls
crawl=$(pgrep --full --oldest 'opilio crawl')
daemon=$(systemctl show --property MainPID --value opilio)
passed "crawling: the daemon runs a job that retries its server"

add "${second[@]}" > /tmp/upgrade.log 2>&1 || { cat /tmp/upgrade.log; fail "upgrade"; }
eventually ready
[ "$(systemctl show --property MainPID --value opilio)" != "$daemon" ] || fail "the old daemon still runs"
kill -0 "$crawl" || fail "the upgrade has stopped the crawl"
grep -q '^disk-free = "none"' $config || fail "the upgrade has overwritten the configuration"
passed "upgraded: daemon restarted, crawl and configuration untouched"

remove > /tmp/remove.log 2>&1 || { cat /tmp/remove.log; fail "removal"; }
[ ! -e /usr/bin/opilio ] || fail "the program is still there"
eventually no_crawl
status /healthz >/dev/null 2>&1 && fail "the daemon still runs"
[ -d /var/lib/opilio/jobs/patient/warcs ] || [ -e /var/lib/opilio/jobs/patient/profile.toml ] || fail "the removal deleted the job"
ls $config* >/dev/null || fail "the removal deleted the changed configuration"
passed "removed: daemon and crawl ended, job and configuration kept"

if [ "$kind" = deb ]; then
    dpkg --purge opilio > /tmp/purge.log 2>&1 || { cat /tmp/purge.log; fail "purge"; }
    [ ! -e $config ] || fail "purge kept the configuration"
    [ ! -e /etc/systemd/system/multi-user.target.wants/opilio.service ] || fail "purge kept the unit enabled"
    [ -e /var/lib/opilio/jobs/patient/profile.toml ] || fail "purge removed a job"
    grep -q '/var/lib/opilio is kept' /tmp/purge.log || fail "purge did not mention the kept state"
    passed "purged: configuration deleted, job kept"
    rm -r /var/lib/opilio/jobs/patient /var/lib/opilio/patient.toml
    add "${first[@]}" >/dev/null 2>&1
    dpkg --purge opilio >/dev/null 2>&1
    [ ! -e /var/lib/opilio ] && [ ! -e /var/cache/opilio ] && [ ! -e /etc/opilio ] || fail "purge without jobs left files"
    passed "purged without jobs: nothing left"
fi
