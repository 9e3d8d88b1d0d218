#!/bin/sh
# The one file of dist/ in a bare root of this release that has no Python: copy one file, install, write, recall, console, uninstall.
# /tmp may not execute there; later HOME is read-only. Needs root, debootstrap, unshare and tmux; touches nothing outside
# a file system of its own in memory. $BEETLE_ROOT names an archive of a root that was made before:
#   sh packaging/tests/bare_root.sh --make ARCHIVE
set -eu
cd "$(dirname "$0")/../.."
here=$PWD

for tool in debootstrap unshare tmux; do
    command -v $tool >/dev/null 2>&1 || { echo "bare_root.sh needs $tool; on Debian: apt-get install $tool" >&2; exit 2; }
done
[ "$(id -u)" = 0 ] || { echo "bare_root.sh needs root: it makes a root to change into" >&2; exit 2; }
file=$(sed -n '1s/.*  //p' dist/SHA256SUMS 2>/dev/null) || true
[ "${1:-}" = --make ] || [ -n "$file" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }

if [ -z "${BARE_ROOT_INSIDE:-}" ]; then
    # Mounts and processes of its own, which end with it.
    BARE_ROOT_INSIDE=yes exec unshare --mount --pid --fork --kill-child sh packaging/tests/bare_root.sh "$@"
fi

work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-bare.XXXXXX")
# Unlike most folders in memory it may hold devices, as debootstrap asks; and nothing waits for a disk.
mount -t tmpfs -o size=1g,mode=755 tmpfs "$work"
root=$work/root
tmux="tmux -S $work/tmux"
finish() {
    $tmux kill-server 2>/dev/null || true
    cd /
    umount -R --lazy "$work" 2>/dev/null || true
    rmdir "$work"
}
trap finish EXIT INT TERM
fail() {
    echo "FAILED: $1" >&2
    exit 1
}

mkdir "$root"
if [ -n "${BEETLE_ROOT:-}" ]; then
    tar -C "$root" -xf "$BEETLE_ROOT"
else
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    echo "making a bare $release ..." >&2
    # Unpacked and not configured: a device's programs and libraries are there, which is what is tried, and nothing else runs.
    debootstrap --foreign --variant=minbase "$release" "$root" >"$work/log" 2>&1 || { tail "$work/log" >&2; fail "debootstrap"; }
    for each in passwd group; do cp "$root/usr/share/base-passwd/$each.master" "$root/etc/$each"; done
    rm -rf "$root/debootstrap" "$root/proc" "$root"/var/cache/apt/archives/*.deb
    mkdir -p "$root/proc" "$root/srv"
fi
if [ "${1:-}" = --make ]; then
    tar -C "$root" -cf "$2" .
    exit
fi
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o noexec,nosuid,mode=1777 tmpfs "$root/tmp"
chroot "$root" useradd --create-home --uid 4711 robot
home=$root/home/robot
cp "dist/$file" "$home/"
cp packaging/tests/bare_root_inside.sh packaging/sample/conversation.json packaging/sample/skill.json "$home/"
chown -R 4711:4711 "$home"

# Nothing of this machine's environment; a bare root has no locale either.
inside() {
    chroot --userspec=4711:4711 "$root" /usr/bin/env -i HOME=/home/robot PATH=/home/robot/.local/bin:/usr/bin:/bin TERM=xterm "$@"
}

inside /bin/sh /home/robot/bare_root_inside.sh first

echo "--- the console"
screen() { $tmux capture-pane -p 2>/dev/null; }
shows() {
    tries=0
    until screen | grep -q "$1"; do
        tries=$((tries + 1))
        [ $tries -lt 150 ] || { screen >&2; fail "the console never showed $1"; }
        sleep 0.2
    done
}
$tmux -f /dev/null new-session -d -x 80 -y 24 "chroot --userspec=4711:4711 $root /usr/bin/env -i HOME=/home/robot PATH=/usr/bin:/bin TERM=screen-256color /home/robot/.local/bin/beetle tui; echo \$? >$work/code; cat"
shows "Overview"
shows "profile-"
screen
$tmux send-keys q
tries=0
until [ -s "$work/code" ]; do
    tries=$((tries + 1))
    [ $tries -lt 50 ] || fail "the console did not end on q"
    sleep 0.2
done
[ "$(cat "$work/code")" = 0 ] || fail "the console ended with $(cat "$work/code")"

inside /bin/sh /home/robot/bare_root_inside.sh last

echo "--- for the whole system"
as_root() {
    chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=xterm "$@"
}
as_root "/home/robot/$file" install --profile compact
as_root beetle --config /etc/beetle/beetle.toml start
as_root beetle transcript commit --file /home/robot/conversation.json
as_root beetle stop
as_root beetle uninstall
[ -s "$root/var/lib/beetle/beetle.db" ] || fail "the system's store did not outlive the program"
[ ! -e "$root/opt/beetle" ] || fail "the system's prefix is still there"

echo "--- HOME is read-only"
mount --bind "$home" "$home"
mount -o remount,bind,ro "$home"
mkdir -m 0700 "$root/srv/cache"
chown 4711:4711 "$root/srv/cache"
code=0
inside "/home/robot/$file" --version 2>"$work/said" || code=$?
cat "$work/said"
[ $code = 8 ] || fail "no place to unpack to: exit code $code instead of 8"
[ "$(grep -c . "$work/said")" -le 2 ] || fail "more than a line and its hint"
inside BEETLE_CACHE=/srv/cache "/home/robot/$file" --version
inside BEETLE_CACHE=/srv/cache "/home/robot/$file" --store /srv/cache/own/beetle.db transcript commit --file /home/robot/conversation.json
inside BEETLE_CACHE=/srv/cache "/home/robot/$file" --store /srv/cache/own/beetle.db memory recall --query "pump serviced" --limit 1
trees=$(find "$root/srv/cache" -mindepth 1 -maxdepth 1 -name '[0-9]*' | wc -l)
[ "$trees" = 1 ] || fail "$trees trees in the cache"
[ -z "$(find "$root/tmp" "$root/var/tmp" -mindepth 1)" ] || { find "$root/tmp" "$root/var/tmp"; fail "something is left in a temporary folder"; }
echo "All of it works in a bare root."
