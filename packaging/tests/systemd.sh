#!/bin/sh
# The service under a real systemd: install, start, kill -9, watchdog, stop, uninstall, in a namespace of its own.
# Usage, as root: packaging/tests/systemd.sh BEETLE [SYSTEM]
#   BEETLE  the one file, as packaging/build.sh makes it
#   SYSTEM  a root folder with systemd in it; without it one is made with debootstrap (Debian 12, some 300 MB)
# Not part of .ci/run: it needs root, mounts, cgroup 2 and the distribution's packages. Exit code 77: it cannot run here,
# and says why.
set -eu

beetle=$(realpath "${1:?usage: systemd.sh BEETLE [SYSTEM]}")
work=$(mktemp -d "${TMPDIR:-/tmp}/beetle-systemd.XXXXXX")
system=${2:-}
init=""

skip() {
    echo "systemd.sh: skipped: $*" >&2
    exit 77
}

clean() {
    [ -z "$init" ] || kill -9 "$init" 2>/dev/null || true
    [ -z "$init" ] || wait "$init" 2>/dev/null || true
    rm -rf --one-file-system "$work"
}
trap clean EXIT

[ "$(id -u)" = 0 ] || skip "needs root"
for each in unshare nsenter debootstrap; do
    command -v "$each" >/dev/null || [ "$each:$system" != "${each}:" ] || skip "$each is missing"
done
if [ -z "$system" ]; then
    system=$work/system
    debootstrap --variant=minbase --include=systemd,systemd-sysv,passwd bookworm "$system" >"$work/debootstrap.log" 2>&1 ||
        skip "debootstrap failed: $(tail -1 "$work/debootstrap.log")"
fi
[ -x "$system/lib/systemd/systemd" ] || skip "$system has no systemd"
cp "$beetle" "$system/root/beetle-file"

# What systemd asks of a container: its own process ids, mounts, control groups and names, and a writable cgroup tree.
cat >"$work/boot" <<'BOOT'
set -eu
system=$1
mount --make-rprivate /
mount --bind "$system" "$system"
mount -t proc proc "$system/proc"
mount -t sysfs -o ro sysfs "$system/sys" 2>/dev/null || mount --rbind -o ro /sys "$system/sys"
mount -t tmpfs tmpfs "$system/run"
mount -t tmpfs tmpfs "$system/tmp"
mount -t tmpfs -o mode=755 tmpfs "$system/dev"
for each in null zero full random urandom tty; do
    touch "$system/dev/$each"
    mount --bind "/dev/$each" "$system/dev/$each"
done
mkdir -p "$system/dev/shm" "$system/dev/pts"
ln -sf pts/ptmx "$system/dev/ptmx" # PrivateDevices= looks for it
mount -t tmpfs tmpfs "$system/dev/shm"
mount -t cgroup2 cgroup2 "$system/sys/fs/cgroup"
cd "$system"
mkdir -p run/old
pivot_root . run/old
umount -l /run/old
exec env -i container=beetle-test PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    /lib/systemd/systemd --system --log-target=console --show-status=no
BOOT
unshare --mount --pid --cgroup --uts --ipc --net --fork --kill-child sh "$work/boot" "$system" >"$work/boot.log" 2>&1 &
parent=$!
init=$parent
tries=0
leader=""
while :; do
    leader=$(pgrep -P "$parent" | head -1 || true)
    if [ -n "$leader" ] && [ "$(cat "/proc/$leader/comm" 2>/dev/null)" = systemd ] &&
        nsenter -t "$leader" -a systemctl is-system-running 2>/dev/null | grep -Eq 'running|degraded'; then
        break
    fi
    kill -0 "$parent" 2>/dev/null || skip "systemd did not boot: $(tail -3 "$work/boot.log" | tr '\n' ' ')"
    tries=$((tries + 1))
    [ "$tries" -lt 240 ] || skip "systemd did not come up: $(tail -3 "$work/boot.log" | tr '\n' ' ')"
    sleep 0.5
done

inside() {
    nsenter -t "$leader" -a env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
}
fail() {
    echo "systemd.sh: FAILED: $*" >&2
    inside journalctl -u beetle --no-pager -n 40 >&2 || true
    exit 1
}
property() {
    inside systemctl show beetle -p "$1" --value
}
until_is() { # NAME VALUE: wait until a property of the service has it
    count=0
    until [ "$(property "$1")" = "$2" ]; do
        count=$((count + 1))
        [ "$count" -lt 240 ] || fail "$1 is $(property "$1"), not $2"
        sleep 0.25
    done
}
said() {
    echo "ok  $*"
}

inside chmod 0755 /root/beetle-file
inside /root/beetle-file install --profile compact || fail "install"
until_is ActiveState active
said "installed: $(property ActiveState), $(property SubState)"
inside beetle status >/dev/null || fail "status"
inside beetle health || fail "health"
inside beetle transcript commit --conversation hall --turn-id t1 --text "The spare key is in the blue box." || fail "commit"

first=$(property MainPID)
inside systemctl kill -s KILL --kill-who=main beetle
count=0
until [ "$(property MainPID)" != "$first" ] && [ "$(property SubState)" = running ]; do
    count=$((count + 1))
    [ "$count" -lt 240 ] || fail "not started again after kill -9"
    sleep 0.25
done
inside beetle recall key | grep -q "blue box" || fail "the acknowledged turn is gone after kill -9"
said "kill -9: started again ($(property NRestarts) restart), nothing lost"

inside mkdir -p /run/systemd/system/beetle.service.d
printf '[Service]\nWatchdogSec=4\n' | inside tee /run/systemd/system/beetle.service.d/watchdog.conf >/dev/null
inside systemctl daemon-reload
inside systemctl restart beetle
until_is SubState running
second=$(property MainPID)
sleep 10
[ "$(property MainPID)" = "$second" ] || fail "a daemon that works was killed by its watchdog"
inside systemctl kill -s STOP --kill-who=main beetle
count=0
until [ "$(property MainPID)" != "$second" ] && [ "$(property SubState)" = running ]; do
    count=$((count + 1))
    [ "$count" -lt 240 ] || fail "a frozen daemon was not started again"
    sleep 0.25
done
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
