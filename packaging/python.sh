# Finds the Python that environments are made with. Sourced by the others, from the top folder.

# Prints the first of these that has venv, is new enough and meets the condition, an expression of Python; 1 where none does.
# Usage: find_python CONDITION [PYTHON...]
find_python() {
    meets="
import sys, sysconfig
try:
    import ensurepip, venv
except ImportError:
    sys.exit(1)
sys.exit(sys.version_info < (3, 11) or not ($1))"
    shift
    # A distribution's own Python is built with profile and link-time optimization, which a local build seldom is: the
    # tests take two thirds of the time.
    [ $# -gt 0 ] || set -- /usr/bin/python3.11 /usr/bin/python3 python3.11 python3.12 python3.13 python3
    for each in "$@"; do
        if command -v "$each" >/dev/null 2>&1 && "$each" -c "$meets" 2>/dev/null; then
            echo "$each"
            return 0
        fi
    done
    return 1
}
