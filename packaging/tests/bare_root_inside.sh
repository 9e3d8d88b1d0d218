#!/bin/sh
# The part of bare_root.sh that runs inside the bare root, as a user without rights, from the one file alone.
set -eu
cd
file=$(echo ./beetle-*-linux-*)
fail() {
    echo "FAILED: $1" >&2
    exit 1
}
show() {
    echo "\$ $*"
    "$@"
}

if [ "$1" = first ]; then
    for python in python python3 /usr/bin/python3*; do
        ! command -v "$python" >/dev/null 2>&1 || fail "this root has a Python: $python"
    done
    show "$file" --version
    show "$file" install --user
    [ "$(command -v beetle)" = "$HOME/.local/bin/beetle" ] || fail "the link is not in the path"
    show beetle doctor --self-test
    show beetle start
    show beetle transcript commit --file conversation.json
    show beetle memory write-procedural --file skill.json
    show beetle memory recall --query 'When was the pump serviced?' --limit 1 | tee said
    grep -q 'pump serviced and quiet' said || fail "what was written is not recalled"
    show beetle verify
    show beetle status
else
    ! beetle uninstall --user 2>said || fail "uninstalled under a running daemon"
    cat said
    show beetle stop
    show beetle uninstall --user
    [ ! -e .local/bin/beetle ] || fail "the link is still there"
    [ ! -e .local/lib/beetle ] || fail "the prefix is still there"
    show "$file" memory recall --query 'When was the pump serviced?' --limit 1 | tee said
    grep -q 'pump serviced and quiet' said || fail "the store did not outlive the program"
    trees=$(find .cache/beetle -mindepth 1 -maxdepth 1 -name '[0-9]*' | wc -l)
    [ "$trees" = 1 ] || fail "$trees trees in the cache"
    rm -rf .cache said
fi
