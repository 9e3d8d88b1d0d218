# Makes the checkout's own environment in .venv, once, and again when pyproject.toml has changed. Sourced by the others.
# Usage: make_environment [extra]   (extra: dev)
. packaging/python.sh

make_environment() {
    want="$(cksum pyproject.toml | cut -d' ' -f1) ${1:-}"
    stamp=.venv/beetle-environment
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
        return 0
    fi
    if ! python=$(find_python True); then
        echo "beetle needs Python 3.11 or newer with venv; none was found. On Debian: apt-get install python3-venv" >&2
        return 1
    fi
    # Nothing is compiled beforehand: most modules of the tools are never loaded, the others are compiled when they are.
    echo "making the environment in .venv with $("$python" --version) ..." >&2
    "$python" -m venv .venv || return 1
    if [ -z "${1:-}" ]; then
        .venv/bin/pip install --quiet --disable-pip-version-check --no-compile -e . || return 1
    # uv installs the tools in a fifth of the time. Where it cannot be had, or is not configured as pip is, pip does it.
    elif ! { .venv/bin/pip install --quiet --disable-pip-version-check --no-compile uv &&
        .venv/bin/uv pip install --quiet --python .venv/bin/python -e ".[$1]"; } 2>/dev/null; then
        .venv/bin/pip install --quiet --disable-pip-version-check --no-compile -e ".[$1]" || return 1
    fi
    echo "$want" >"$stamp"
}
