# Makes a folder for what a run writes and needs only while it runs, and removes it when the shell ends. Sourced by the others.
# Usage: make_temporary MEBIBYTES   (sets TMPDIR)

# In memory where there is room and programs may run: the tests sync thousands of small stores, which a disk takes minutes
# for and which no test can tell. A TMPDIR that is set already is where the folder is made.
make_temporary() {
    # The run that this one is a part of has made it.
    [ -z "${BEETLE_TEMPORARY:-}" ] || [ "$BEETLE_TEMPORARY" != "${TMPDIR:-}" ] || return 0
    place=${TMPDIR:-/tmp}
    if [ -z "${TMPDIR:-}" ] && holds_programs /dev/shm "$1"; then
        place=/dev/shm
    fi
    # A short name: the path of a socket has 107 bytes at most. Other users of the tests pass through it.
    TMPDIR=$(mktemp -d "$place/bt.XXXXXX") || return 1
    chmod 0711 "$TMPDIR"
    BEETLE_TEMPORARY=$TMPDIR
    export TMPDIR BEETLE_TEMPORARY
    # What tests leave without rights to it would stay.
    trap 'chmod -R u+rwX "$TMPDIR" 2>/dev/null; rm -rf "$TMPDIR"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Whether folder $1 has $2 MiB free, and a program written there runs.
holds_programs() {
    [ -d "$1" ] && [ -w "$1" ] || return 1
    free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "$free" -ge "$2" ] || return 1
    probe=$(mktemp "$1/beetle-probe.XXXXXX") || return 1
    printf '#!/bin/sh\nexit 0\n' >"$probe"
    chmod 700 "$probe"
    runs=yes
    "$probe" 2>/dev/null || runs=""
    rm -f "$probe"
    [ -n "$runs" ]
}
