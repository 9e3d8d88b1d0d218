# Lets this kernel run programs for aarch64, by qemu's user emulation, for one script and what it starts. Sourced by the others.
# Usage: emulate_aarch64 "$0" "$@"   (the script starts again, with namespaces of its own; it returns in that one)
# The handler is registered in a user namespace, which Linux 6.7 and newer keep apart from the machine's: nothing of the
# machine changes, and it ends with the script. On an older kernel a handler that the machine has already is used.

# ELF, 64 bits, little endian, EXEC or DYN, EM_AARCH64. P: the program gets its argv[0]. F: qemu is opened now, so roots
# that do not hold it have it too.
HANDLER=':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'

emulate_aarch64() {
    [ "$(id -u)" = 0 ] || { echo "$0 needs root: it makes a root to change into" >&2 && exit 2; }
    qemu=$(command -v qemu-aarch64-static) ||
        { echo "$0 needs qemu-aarch64-static; on Debian: apt-get install qemu-user-static" >&2 && exit 2; }
    case ${EMULATION:-} in
    "")
        if grep -qs '^enabled' /proc/sys/fs/binfmt_misc/qemu-aarch64 && grep -q '^flags:.*F' /proc/sys/fs/binfmt_misc/qemu-aarch64; then
            EMULATION=ready exec unshare --mount --pid --fork --kill-child --mount-proc sh "$@"
        fi
        own_users "$@"
        ;;
    own)
        mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc &&
            echo "$HANDLER:$qemu:PF" >/proc/sys/fs/binfmt_misc/register ||
            { echo "$0: this kernel has no binfmt_misc for a user namespace (Linux 6.7): install binfmt-support" >&2 && exit 2; }
        EMULATION=ready exec unshare --pid --fork --kill-child --mount --mount-proc sh "$@"
        ;;
    esac
}

# Starts the script in a user namespace that has this one's users, all by the numbers that they have here.
own_users() {
    pipes=$(mktemp -d)
    mkfifo "$pipes/made" "$pipes/mapped"
    EMULATION=own unshare --user --mount sh -c '
        echo >"$0/made"
        read -r _ <"$0/mapped"
        exec sh "$@"' "$pipes" "$@" &
    child=$!
    read -r _ <"$pipes/made"
    echo "0 0 4294967295" >"/proc/$child/uid_map"
    echo "0 0 4294967295" >"/proc/$child/gid_map"
    echo >"$pipes/mapped"
    rm -rf "$pipes"
    # Unshare takes no notice of what asks it to end; with it everything in there ends.
    trap 'kill -KILL "$child" 2>/dev/null' INT TERM
    code=0
    wait "$child" || code=$?
    exit "$code"
}
