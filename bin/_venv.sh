# Sourced by the scripts beside it: finds Python, keeps .venv in step with pyproject.toml.
#
#   prepare [extra]     makes .venv if it is missing; installs minutch (with an extra of pyproject.toml: test, dev) and
#                       compiles its kernels if it isn't installed yet or pyproject.toml has changed
#
# Sets $home and $python, exports MINUTCH_HOME.

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$home/.venv
python=$venv/bin/python
export MINUTCH_HOME=${MINUTCH_HOME:-$home}

# Prints the first Python that is new enough and can make virtual environments.
find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3 python; do
        if [ -n "$candidate" ] &&
            "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    echo "minutch needs Python 3.11 or newer with its venv module, and found none (PYTHON names another one;" >&2
    echo "on Debian and Ubuntu: apt install python3 python3-venv)" >&2
    return 1
}

install() {
    local extra=$1 stamp=$2 wanted=$3 base log=$venv/install.log
    if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        base=$(find_python) || exit 1
        echo "minutch: making .venv with $base" >&2
        "$base" -m venv --clear "$venv" || exit 1
    fi
    echo "minutch: installing what it needs into .venv (once; takes a minute or two)" >&2
    if ! (cd "$home" && "$python" -m pip install --disable-pip-version-check --no-input -q -e ".${extra:+[$extra]}") \
        >"$log" 2>&1; then
        tail -n 20 "$log" >&2
        echo "minutch: the installation failed, $log has it all" >&2
        exit 1
    fi
    echo "minutch: compiling kernels (once; about 20 s)" >&2
    if ! (cd "$home" && "$python" -m minutch warm) >>"$log" 2>&1; then
        echo "minutch: the kernels were not compiled (see $log); they will be when they are first used" >&2
    fi
    printf '%s' "$wanted" >"$stamp"
}

prepare() {
    local extra=${1:-} stamp wanted
    stamp=$venv/.minutch-$extra
    wanted="$home $(cksum <"$home/pyproject.toml")"
    if [ -x "$python" ] && [ -f "$stamp" ] && [ "$(<"$stamp")" = "$wanted" ]; then
        return 0
    fi
    if command -v flock >/dev/null 2>&1; then # two scripts at once: the second waits, then finds it done
        exec 9>"$home/.venv.lock"
        flock 9
        if [ ! -x "$python" ] || [ ! -f "$stamp" ] || [ "$(<"$stamp")" != "$wanted" ]; then
            install "$extra" "$stamp" "$wanted"
        fi
        exec 9>&-
    else
        install "$extra" "$stamp" "$wanted"
    fi
}
