#!/bin/sh
# The main job on a fresh machine: makes .venv, starts a daemon on a fresh embedded store in a folder of its own, writes
# a conversation and a skill, recalls, projects, shows what is there, and stops the daemon.
set -eu
cd "$(dirname "$0")/.."
. packaging/environment.sh
make_environment

folder=$(mktemp -d "${TMPDIR:-/tmp}/beetle-try.XXXXXX")
export BEETLE_SOCKET="$folder/beetle.sock" BEETLE_STORE="$folder/beetle.db"
PATH="$PWD/.venv/bin:$PATH"
trap 'beetle stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT INT TERM

show() {
    printf '\n$ beetle'
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./:=-]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    beetle "$@"
}

show start --profile compact
show transcript commit --file packaging/sample/conversation.json
show memory write-procedural --file packaging/sample/skill.json
show memory recall --query 'When was the pump serviced?' --limit 3
show memory project --user-query 'The pump is loud again, what do I do?' --system-max-len 1200
show skill list
show transcript timeline --conversation workshop --view host_ui --limit 3
show verify
show status
show stop
echo
echo "That was the main job. The store was in $folder and is gone now."
