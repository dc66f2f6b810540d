# Shared by ./demo, ./test and scripts/benchmark: installs what is missing and builds.
# Sourced, not run. Everything here is idempotent, and does nothing when nothing is missing.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export SWIFT_BACKTRACE=enable=no # the backtracer can hang when its output is a pipe

if [ -t 1 ]; then
    bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' dim='' green='' red='' plain=''
fi

say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
die() {
    printf '%serror:%s %s\n' "$red" "$plain" "$*" >&2
    exit 1
}

# What the build needs.
build_packages=(
    pkg-config libngtcp2-dev libngtcp2-crypto-gnutls-dev libnghttp3-dev libgnutls28-dev
    libsodium-dev libsqlite3-dev libqrencode-dev
)
demo_packages=(curl python3)
test_packages=(curl faketime openssl iproute2 util-linux python3 python3-venv chromium)
benchmark_packages=(curl openssl python3 nginx-light wrk openssh-client openssh-server)

require_swift() {
    command -v swift >/dev/null || die "no 'swift' on PATH: install Swift 6.0 or later from https://www.swift.org/install/linux/ and put its usr/bin on PATH"
}

# Installs those of the named Debian packages that are missing.
install_packages() {
    local missing=() name
    command -v dpkg-query >/dev/null || die "this script installs Debian packages; on another system install the equivalents of: $*"
    local installed
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for name in "$@"; do
        grep -qx "$name installed" <<<"$installed" || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] && return
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || die "these Debian packages are missing and there is no sudo; as root run: apt-get install ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq || die "apt-get update failed"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log_directory/apt.log" 2>&1 \
        || { tail -n 20 "$log_directory/apt.log" >&2; die "apt-get could not install: ${missing[*]}"; }
}

# Makes .venv with the pinned Python packages of the tests; remade when the pins change.
install_python_packages() {
    local pins="$root/Tests/EndToEnd/requirements.txt" venv="$root/.venv"
    cmp -s "$pins" "$venv/installed.txt" && "$venv/bin/python" -c '' 2>/dev/null && return
    say "making .venv with the Python packages of the tests"
    rm -rf "$venv"
    python3 -m venv "$venv" || die "python3 -m venv failed (Debian: apt-get install python3-venv)"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$pins" \
        || die "pip could not install the packages of Tests/EndToEnd/requirements.txt"
    cp "$pins" "$venv/installed.txt"
}

# Builds the release products; sets $bin to the directory that holds them. With CULVERT_BIN the products there are
# used as they are.
build_release() {
    if [ -n "${CULVERT_BIN:-}" ]; then
        bin=$CULVERT_BIN
        return
    fi
    if [ -d "$root/.build/release" ]; then
        say "building (swift build -c release)"
    else
        say "building (swift build -c release); the first build takes some minutes"
    fi
    swift build --package-path "$root" -c release || die "the build failed"
    bin=$(swift build --package-path "$root" -c release --show-bin-path)
}

log_directory="$root/.build/logs"
mkdir -p "$log_directory"
