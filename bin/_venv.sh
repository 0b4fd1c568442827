# Sourced by the scripts beside it: finds Python and keeps .venv up to date with pyproject.toml.
#
#   prepare [extra]     makes .venv if it is missing; installs minutch (with an extra of pyproject.toml: test, dev) if it
#                       isn't installed yet or pyproject.toml has changed; compiles kernels if their sources have
#
# Sets $home and $python, exports MINUTCH_HOME. No module is taken from the working folder, which may be anybody's (-P; -I
# for a Python that may be too old to know it).

home=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$home/.venv
python=$venv/bin/python
export MINUTCH_HOME=${MINUTCH_HOME:-$home}

# Prints the first Python that is new enough and can make virtual environments.
find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3.14 python3.13 python3.12 python3.11 python3 python; do
        if [ -n "$candidate" ] &&
            "$candidate" -I -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    echo "minutch needs Python 3.11 or newer with its venv module, and found none (PYTHON names another one;" >&2
    echo "on Debian and Ubuntu: apt install python3 python3-venv)" >&2
    return 1
}

say() {
    echo "minutch: $*" >&2
}

# Reports the steps of pip by the lines that it prints, and every eight seconds that it is still at one; all lines go to
# the log.
follow() {
    local log=$1 line part= status
    while :; do
        IFS= read -r -t 8 line && status=0 || status=$?
        line=$part$line part=
        if [ "$status" -gt 128 ]; then # what has come of a line is kept
            part=$line
            say "  still at it (${SECONDS} s)"
            continue
        fi
        [ "$status" = 0 ] || [ -n "$line" ] || break
        printf '%s\n' "$line" >>"$log"
        case $line in
            *"Installing build dependencies: started"*) say "  fetching the build backend" ;;
            *"Installing backend dependencies: started"*) say "  fetching the compiler of kernels (Numba)" ;;
            *"Preparing editable metadata"*": started"*) say "  compiling and linking kernels (about 20 s)" ;;
            *"Installing collected packages:"*", "*) say "  installing packages" ;;
            "Collecting "*) line=${line#Collecting } && say "  fetching ${line%%[ <>=!~;(]*}" ;;
        esac
        [ "$status" = 0 ] || break
    done
}

# What minutch needs, with an extra: the packages of pyproject.toml, in place of its own extras theirs.
needs() {
    "$python" -P -c '
import sys, tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
wanted, extras = list(project["dependencies"]), project["optional-dependencies"]
wanted += extras[sys.argv[1]] if sys.argv[1] else []
for need in wanted:
    if need.startswith("minutch["):
        wanted += [more for name in need[8:-1].split(",") for more in extras[name]]
    else:
        print(need)
' "$1"
}

pip_install() {
    local log=$1
    shift
    "$python" -P -m pip install --disable-pip-version-check --no-input --no-compile --progress-bar off "$@" 2>&1 |
        follow "$log"
    return "${PIPESTATUS[0]}"
}

install() {
    local extra=$1 base log=$venv/install.log others
    if ! "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        base=$(find_python) || exit 1
        say "making .venv with $base"
        "$base" -P -m venv --clear "$venv" 2>&1 | follow /dev/stderr || exit 1
    fi
    say "installing what it needs into .venv (once; takes a minute or so)"
    : >"$log"
    cd "$home"
    # Side by side: packages are fetched while kernels are compiled, which takes as long.
    needs "$extra" >"$venv/needed.txt" || exit 1
    pip_install "$log" -r "$venv/needed.txt" &
    others=$!
    if ! { pip_install "$log" --no-deps -e . && wait "$others"; }; then
        wait "$others" || true
        tail -n 20 "$log" >&2
        say "the installation failed, $log has it all"
        exit 1
    fi
    cd "$OLDPWD"
    say "installed"
}

# Compiles kernels that have changed: here if Numba is installed, else as the installation does.
compile_kernels() {
    if "$python" -P -c 'import numba' >/dev/null 2>&1; then
        say "compiling and linking kernels, which have changed (about 20 s)"
        (cd "$home" && "$python" -P -m minutch.kernels.build >&2) || exit 1
    else
        install "$1"
    fi
}

has_kernels() {
    [ -f "$venv/.minutch-kernels" ] && [ "$(<"$venv/.minutch-kernels")" = "$kernels" ]
}

bring_up_to_date() {
    local extra=$1
    if ! is_installed "$extra"; then
        install "$extra"
        printf '%s' "$wanted" >"$stamp"
    elif ! has_kernels; then
        compile_kernels "$extra"
    fi
    printf '%s' "$kernels" >"$venv/.minutch-kernels"
}

# Tells whether it is installed as pyproject.toml says: with an extra, or, for `$1` empty, with any or none.
is_installed() {
    local stamp
    for stamp in "$venv/.minutch-$1" "$venv"/.minutch-{test,dev}; do
        if [ -f "$stamp" ] && [ "$(<"$stamp")" = "$wanted" ] && [ -x "$python" ]; then
            return 0
        fi
        [ -z "$1" ] || return 1
    done
    return 1
}

prepare() {
    local extra=${1:-} stamp wanted kernels
    stamp=$venv/.minutch-$extra
    wanted="$home $(cksum <"$home/pyproject.toml")"
    kernels=$(cat "$home"/minutch/kernels/*.py | cksum)
    if is_installed "$extra" && has_kernels; then
        return 0
    fi
    if [ ! -w "$home" ] || { [ -e "$home/.venv.lock" ] && [ ! -w "$home/.venv.lock" ]; }; then
        say "$home is not installed yet, or has changed since, and is another user's:"
        say "  they run bin/minutch once, after which it works for everybody; or clone it for yourself"
        exit 1
    fi
    if command -v flock >/dev/null 2>&1; then # two scripts at once: the second waits, then finds it done
        exec 9>"$home/.venv.lock"
        flock 9
        bring_up_to_date "$extra"
        exec 9>&-
    else
        bring_up_to_date "$extra"
    fi
}
