#!/bin/sh
# The one file of dist/ in roots that have no Python and no C library of their own: copy one file, install, write, recall,
# console, uninstall. The first root holds BusyBox and nothing else. The second is like Alpine's, with musl, and with a GNU
# loader and C library that nobody could use. /tmp may not execute there; later HOME is read-only.
# Needs root, unshare, tmux, and Debian's packages busybox-static and musl; touches nothing outside a file system of its own
# in memory.
set -eu
cd "$(dirname "$0")/../.."
. packaging/tests/roots.sh

need_roots tmux
file=$(sed -n '1s/.*  //p' "$dist/SHA256SUMS" 2>/dev/null) || true
[ -n "$file" ] || { echo "nothing is built: sh packaging/build.sh" >&2; exit 2; }
if [ -z "${BARE_ROOT_INSIDE:-}" ]; then
    # Mounts and processes of its own, which end with it.
    BARE_ROOT_INSIDE=yes exec unshare --mount --pid --fork --kill-child sh packaging/tests/bare_root.sh "$@"
fi

make_work
tmux="tmux -S $work/tmux"
finish() {
    $tmux kill-server 2>/dev/null || true
    remove_work
}
trap finish EXIT INT TERM

echo "--- BusyBox and nothing else"
make_root "$work/bare"
as_root_of "$work/bare" BEETLE_CACHE=/root/cache "/home/robot/$file" doctor --self-test

root=$work/musl
make_root "$root"
add_musl "$root"
home=$root/home/robot
cp packaging/tests/bare_root_inside.sh packaging/sample/conversation.json packaging/sample/skill.json "$home/"
chown -R 4711:4711 "$home"
echo "--- musl, and a GNU loader that is none"
inside() {
    as_robot_of "$root" "$@"
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
$tmux -f /dev/null new-session -d -x 80 -y 24 "$(command -v chroot) --userspec=4711:4711 $root /usr/bin/env -i HOME=/home/robot PATH=/usr/bin:/bin TERM=screen-256color /home/robot/.local/bin/beetle tui; echo \$? >$work/code; cat"
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
    as_root_of "$root" "$@"
}
as_root "/home/robot/$file" install --profile compact
as_root beetle --config /etc/beetle/beetle.toml start
as_root beetle transcript commit --file /home/robot/conversation.json
as_root beetle stop
as_root beetle uninstall
[ -s "$root/var/lib/beetle/beetle.db" ] || fail "the system's store did not outlive the program"
[ ! -e "$root/opt/beetle" ] || fail "the system's prefix is still there"

echo "--- HOME is read-only"
rm -rf "$root/var/cache/beetle" "$root/root/.cache"
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
echo "All of it works in bare roots."
