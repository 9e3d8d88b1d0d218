# Makes roots that hold BusyBox, a user `robot`, and the one file of dist/: what a small device has. Sourced by the others.
# They are folders of a file system in memory that belongs to this process's own mounts. packaging/tests/aarch64.sh names
# another build, and BusyBox and musl of its processor: $BEETLE_DIST, $BEETLE_BUSYBOX, $BEETLE_MUSL.

dist=${BEETLE_DIST:-dist}

fail() {
    echo "FAILED: $1" >&2
    exit 1
}

# Ends unless this can be done here; the arguments are further programs that are needed.
need_roots() {
    [ "$(id -u)" = 0 ] || { echo "$0 needs root: it makes a root to change into" >&2; exit 2; }
    busybox=${BEETLE_BUSYBOX:-busybox}
    for tool in unshare "$busybox" "$@"; do
        command -v "$tool" >/dev/null 2>&1 ||
            { echo "$0 needs $tool; on Debian: apt-get install busybox-static musl tmux" >&2; exit 2; }
    done
    busybox=$(command -v "$busybox")
    chroot=$(command -v chroot || echo /usr/sbin/chroot)
}

# Sets `work`, a folder in memory. Unlike most of those it may hold devices, and programs may run.
make_work() {
    work=$(mktemp -d "${TMPDIR:-/var/tmp}/beetle-bare.XXXXXX")
    mount -t tmpfs -o size=4g,mode=755 tmpfs "$work"
}

remove_work() {
    cd /
    umount -R --lazy "$work" 2>/dev/null || true
    rmdir "$work"
}

# A root at $1: BusyBox's programs, four devices, the database of users, and the one file in robot's home.
make_root() {
    mkdir -p "$1"
    mount --bind "$1" "$1"
    (
        cd "$1"
        mkdir -p bin sbin dev etc home/robot lib lib64 opt proc root run srv tmp usr/bin usr/sbin usr/local/bin var/cache var/lib var/tmp
        chmod 0700 root
        cp "$busybox" bin/busybox
        for name in $(bin/busybox --list); do
            case $name in
            busybox) ;;
            env | test | \[*) ln -s /bin/busybox "usr/bin/$name" ;;
            *) ln -s busybox "bin/$name" ;;
            esac
        done
        printf 'root:x:0:0:root:/root:/bin/sh\nrobot:x:4711:4711::/home/robot:/bin/sh\n' >etc/passwd
        printf 'root:x:0:\nrobot:x:4711:\n' >etc/group
        printf 'root:*:19000:0:99999:7:::\n' >etc/shadow
        for name in null zero urandom tty; do
            # Bound, not made: a user namespace may not make them.
            : >"dev/$name"
            mount --bind "/dev/$name" "dev/$name"
        done
    )
    if ls "$1"/lib/* "$1"/lib64/* >/dev/null 2>&1; then
        fail "the root holds a library"
    fi
    cp "$dist/$file" "$1/home/robot/"
    chown -R 4711:4711 "$1/home/robot"
    mount -t proc proc "$1/proc"
    mount -t tmpfs -o noexec,nosuid,mode=1777 tmpfs "$1/tmp"
}

# Musl as Alpine has it, and files by the GNU library's names that must not be touched: loading one would fail.
add_musl() {
    loader=${BEETLE_MUSL:-$(ls /lib/ld-musl-*.so.1)}
    cp -L "$loader" "$1/lib/"
    for name in lib64/ld-linux-x86-64.so.2 lib/ld-linux-aarch64.so.1 lib/libc.so.6 lib64/libc.so.6 lib/libz.so.1 lib64/libpthread.so.0; do
        echo "no library" >"$1/$name"
    done
}

# Nothing of this machine's environment; a bare root has no locale either.
as_robot_of() {
    in=$1
    shift
    "$chroot" --userspec=4711:4711 "$in" /usr/bin/env -i HOME=/home/robot PATH=/home/robot/.local/bin:/usr/bin:/bin TERM=xterm "$@"
}

as_root_of() {
    in=$1
    shift
    "$chroot" "$in" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=xterm "$@"
}
