#!/bin/sh
# Plays docs/device.md with the one file of dist/: two devices, roots that hold BusyBox alone. The first is installed, gets its
# first memory and has a replica on a disk that both see; its plug is pulled (its whole namespace is killed at once), it starts
# again with all that was acknowledged, and is lost. The second one restores from the replica. The commands are those of the
# page's blocks. Needs what packaging/tests/bare_root.sh needs.
set -eu
cd "$(dirname "$0")/../.."
. packaging/tests/roots.sh

need_roots nsenter
file=$(sed -n '1s/.*  //p' "$dist/SHA256SUMS" 2>/dev/null) || true
[ -n "$file" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
if [ -z "${DEVICE_INSIDE:-}" ]; then
    DEVICE_INSIDE=yes exec unshare --mount --pid --fork --kill-child --mount-proc sh packaging/tests/device.sh "$@"
fi
make_work
trap remove_work EXIT INT TERM

# The lines of a section's block of a kind: `block "Install" sh`.
block() {
    awk -v title="## $1" -v kind="\`\`\`$2" '
        $0 == title { in_section = 1; next }
        /^## / { in_section = 0 }
        in_section && $0 == kind { in_block = 1; next }
        /^```$/ { in_block = 0 }
        in_section && in_block' docs/device.md
}

# Turns a device on: a process of its own as the first of a namespace, which all others of the device are in.
turn_on() {
    root=$1
    unshare --mount --pid --fork --mount-proc="$root/proc" "$chroot" "$root" /bin/sh -c 'echo on; exec sleep 3600' >"$work/on" &
    switch=$!
    tries=0
    until [ -s "$work/on" ]; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || fail "the device does not turn on"
        sleep 0.05
    done
    first=$(pgrep -P "$switch")
}

# Everything of the device ends at once, and nothing of it is asked.
pull_the_plug() {
    kill -9 "$first"
    wait "$switch" 2>/dev/null || true
    : >"$work/on"
}

# A line on the device, as its root.
on_device() {
    echo "$ $*"
    nsenter --target "$first" --mount --pid -- "$chroot" "$root" /usr/bin/env -i HOME=/root \
        PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=xterm /bin/sh -c "cd /home/robot && $*"
}

play() {
    block "$1" sh >"$work/lines"
    [ -s "$work/lines" ] || fail "docs/device.md has no block in $1"
    while read -r line; do
        on_device "$(echo "$line" | sed "s/beetle-[0-9.]*-linux-[a-z0-9_]*/$file/")" </dev/null || fail "$line"
    done <"$work/lines"
}

device() {
    make_root "$1"
    mkdir -p "$1/mnt/replica"
    mount --bind "$work/replica" "$1/mnt/replica"
    turn_on "$1"
    play Install
    block "Name a replica" toml >>"$1/etc/beetle/beetle.toml"
}

mkdir "$work/replica"
echo "--- the first device"
device "$work/first"
play "The first memory"
tries=0
until on_device beetle --json replica status | tee "$work/status" | grep -q '"lag_transactions": *0'; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || { cat "$work/status" >&2; fail "the replica does not catch up"; }
    sleep 0.1
done
echo "--- the power cut"
pull_the_plug
turn_on "$work/first"
play "The power cut"
on_device 'beetle recall "when is the lift serviced"' | grep -q "serviced in May" || fail "the first memory is lost"
echo "--- the device is lost"
pull_the_plug
rm -rf "$work/first/var/lib/beetle"
device "$work/second"
block "The device is lost" toml >>"$work/second/etc/beetle/beetle.toml"
play "The device is lost"
on_device 'beetle recall "when is the lift serviced"' | grep -q "serviced in May" || fail "the restored store does not know it"
on_device beetle verify
pull_the_plug
echo "A device was installed, cut off, lost and restored."
