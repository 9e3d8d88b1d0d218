#!/bin/sh
# The service under a real systemd: install, start, kill -9, watchdog, stop, uninstall, in a namespace of its own.
# Usage, as root: packaging/tests/systemd.sh BEETLE [SYSTEM]
#   BEETLE  the one file, as packaging/build.sh makes it
#   SYSTEM  a root folder with systemd in it; without it one is made with debootstrap (Debian 12, some 300 MB)
# Not part of .ci/run: it needs root, mounts, cgroup 2 and the distribution's packages. Exit code 77: it cannot run here,
# and says why.
set -eu

beetle=$(realpath "${1:?usage: systemd.sh BEETLE [SYSTEM]}")
. "$(dirname "$0")/booted.sh"
work=$(mktemp -d "${TMPDIR:-/tmp}/beetle-systemd.XXXXXX")
system=${2:-}

clean() {
    stop_system
    rm -rf --one-file-system "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

[ "$(id -u)" = 0 ] || skip "needs root"
for each in unshare nsenter; do
    command -v "$each" >/dev/null || skip "$each is missing"
done
if [ -z "$system" ]; then
    system=$work/system
    make_system "$system"
fi
cp "$beetle" "$system/root/beetle-file"
boot_system "$system" || skip "$why"

fail() {
    echo "systemd.sh: FAILED: $*" >&2
    inside journalctl -u beetle --no-pager -n 40 >&2 || true
    exit 1
}
said() {
    echo "ok  $*"
}

inside chmod 0755 /root/beetle-file
inside /root/beetle-file install --profile compact || fail "install"
wait_until is ActiveState active || fail "it is $(property ActiveState), not active"
said "installed: $(property ActiveState), $(property SubState)"
inside beetle status >/dev/null || fail "status"
inside beetle health || fail "health"
inside beetle transcript commit --conversation hall --turn-id t1 --text "The spare key is in the blue box." || fail "commit"

first=$(property MainPID)
inside systemctl kill -s KILL --kill-who=main beetle
wait_until runs_anew "$first" || fail "not started again after kill -9"
inside beetle recall key | grep -q "blue box" || fail "the acknowledged turn is gone after kill -9"
said "kill -9: started again ($(property NRestarts) restart), nothing lost"

inside mkdir -p /run/systemd/system/beetle.service.d
printf '[Service]\nWatchdogSec=4\n' | inside tee /run/systemd/system/beetle.service.d/watchdog.conf >/dev/null
inside systemctl daemon-reload
inside systemctl restart beetle
wait_until is SubState running || fail "it is $(property SubState), not running"
second=$(property MainPID)
sleep 10
[ "$(property MainPID)" = "$second" ] || fail "a daemon that works was killed by its watchdog"
inside systemctl kill -s STOP --kill-who=main beetle
wait_until runs_anew "$second" || fail "a frozen daemon was not started again"
said "watchdog: a frozen daemon is killed and started again, one that works is not"

began=$(date +%s)
inside systemctl stop beetle
took=$(($(date +%s) - began))
[ "$(property Result)" = success ] || fail "stop: $(property Result)"
[ "$took" -lt 30 ] || fail "stop took $took s"
said "stop: $took s, $(property Result)"

lines=$(inside journalctl -u beetle -o cat --no-pager | grep -c '^{"time":') || fail "no structured line in the journal"
inside journalctl -u beetle -o cat --no-pager | grep -q '"event":"listening"' || fail "the journal does not tell of the start"
! inside journalctl -u beetle -o cat --no-pager | grep -q "blue box" || fail "the journal holds content"
said "journal: $lines structured lines, no content"

inside beetle uninstall || fail "uninstall"
[ -z "$(inside systemctl list-unit-files --no-legend beetle.service)" ] || fail "the unit is still there"
[ -e "$system/var/lib/beetle/beetle.db" ] || fail "uninstall has touched data"
said "uninstalled; the store stays"
echo "systemd.sh: all passed ($(inside systemctl --version | head -1))"
