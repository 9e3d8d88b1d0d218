# Boots a root folder with a real systemd in it, in a namespace of its own. Sourced by systemd.sh and packages.sh, which have set
# `work`, a folder for logs, and call stop_system when they end.
# Exit code 77 of `skip`: it cannot run here, and says why.

init=""
leader=""

skip() {
    echo "$0: skipped: $*" >&2
    exit 77
}

# A root with systemd at $1, of Debian 12: some 300 MB.
make_system() {
    command -v debootstrap >/dev/null || skip "debootstrap is missing"
    debootstrap --variant=minbase --include=systemd,systemd-sysv,init-system-helpers,passwd bookworm "$1" \
        >"$work/debootstrap.log" 2>&1 || skip "debootstrap failed: $(tail -1 "$work/debootstrap.log")"
}

# Boots the root $1, and sets `leader` to its first process; 1, with the reason in `why`, where that cannot be done.
boot_system() {
    system=$1
    [ -x "$system/lib/systemd/systemd" ] || { why="$system has no systemd" && return 1; }
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
    init=$!
    booted() {
        leader=$(pgrep -P "$init" | head -1 || true)
        [ -n "$leader" ] && [ "$(cat "/proc/$leader/comm" 2>/dev/null)" = systemd ] &&
            nsenter -t "$leader" -a systemctl is-system-running 2>/dev/null | grep -Eq 'running|degraded'
    }
    if ! wait_until booted; then
        why="systemd did not boot: $(tail -3 "$work/boot.log" | tr '\n' ' ')"
        stop_system
        return 1
    fi
}

stop_system() {
    [ -n "$init" ] || return 0
    kill -9 "$init" 2>/dev/null || true
    wait "$init" 2>/dev/null || true
    init=""
    leader=""
}

# Waits until the command in the arguments succeeds; 1 after two minutes.
wait_until() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 480 ] && { [ -z "$init" ] || kill -0 "$init" 2>/dev/null; } || return 1
        sleep 0.25
    done
}

# A command in the booted system, as its root.
inside() {
    nsenter -t "$leader" -a env PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive "$@"
}

property() {
    inside systemctl show beetle -p "$1" --value
}

# Whether the service runs as another process than $1.
runs_anew() {
    [ "$(property MainPID)" != "$1" ] && [ "$(property SubState)" = running ]
}

# Whether property $1 of the service is $2.
is() {
    [ "$(property "$1")" = "$2" ]
}
