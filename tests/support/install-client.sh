#!/bin/bash
# Installs a pinned Claude Code client for the tests that need it.
#
#   tests/support/install-client.sh [TARGET_DIR [VERSION]]
#
# VERSION is 2.1.332, or 2.1.197, the last that npm installs where Node is older than 22.
# It goes to TARGET_DIR/client/VERSION/claude (TARGET_DIR: the argument, CARGO_TARGET_DIR, or the repository's target/).
# Only the native binary's package is fetched, with npm, and only when the file is not already there. Package and binary
# must have exactly the digests below. The client's licence forbids redistribution: never commit or upload it.
set -euo pipefail

version=${2:-2.1.332}
package=@anthropic-ai/claude-code-linux-x64
case $version in
    2.1.332)
        package_sha512=f4JWhzwYutJIHScC7/dYOPX6s28tt7ZADhsOi8zwOHq5fFPEuUeChh2NMfinSg0GrUckYxaeebC4h0DqiKzLcw==
        binary_sha256=a2df1f41bb00250992926420d0063f89b127cb81abdd284dbefb80c50ff1d026
        binary_size=402325736
        ;;
    2.1.197)
        package_sha512=rIlKmrY0QMyHgPRX/MYWNj039vbypICvI9jVe3rs9Xy2RnNklySjyPxqh62QadznzoftEO23uYQ1tFePcQ//bg==
        binary_sha256=f54e69cbc89b2da61a415700af7ff52a147e862517d4f1b0eecf768448cf7f83
        binary_size=245517112
        ;;
    *)
        echo "install-client: no digests are known for version $version" >&2
        exit 1
        ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
target=${1:-${CARGO_TARGET_DIR:-$root/target}}
folder=$target/client/$version
client=$folder/claude

fail() { echo "install-client: $1" >&2; exit 1; }

is_the_pinned_binary() {
    [ -f "$1" ] && [ "$(stat -c %s "$1")" = "$binary_size" ] &&
        echo "$binary_sha256  $1" | sha256sum --check --status
}

if is_the_pinned_binary "$client"; then
    echo "install-client: Claude Code $version is at $client"
    exit 0
fi

[ "$(uname -sm)" = "Linux x86_64" ] || fail "the pinned client is for Linux on x86-64, this is $(uname -sm)"
command -v npm >/dev/null || fail "npm is needed to fetch $package (Debian: apt-get install npm)"

mkdir -p "$folder"
work=$(mktemp -d "$folder/.install-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent --ignore-scripts "$package@$version" >/dev/null || fail "npm could not fetch $package@$version"
archive=$(echo ./*.tgz)
got=$(openssl dgst -sha512 -binary "$archive" | base64 -w0)
[ "$got" = "$package_sha512" ] || fail "$package@$version has sha512 $got, expected $package_sha512"
tar -xzf "$archive" package/claude
is_the_pinned_binary package/claude || fail "the binary in $package@$version is not the expected one"
chmod 755 package/claude
said=$(package/claude --version)
[ "$said" = "$version (Claude Code)" ] || fail "the binary says it is '$said', expected $version"
mv -f package/claude "$client"
echo "install-client: installed Claude Code $version at $client"
