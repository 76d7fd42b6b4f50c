#!/usr/bin/env bash
# Creates two base images on a machine that reaches Debian and npm but no image registry:
#
#   hack/image/bases.sh [BUILD_NAME [RUNTIME_NAME]]
#
# The first is a small Debian with the Node.js of this checkout and the npm and CA certificates of this
# machine. The second contains only that node and its libraries: no shell, no package manager. Requires
# buildah, debootstrap and root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

build_name=${1:-localhost/node-build}
runtime_name=${2:-localhost/node-runtime}
suite=${SUITE:-trixie}
repository=${DEBIAN_REPOSITORY:-http://deb.debian.org/debian}
export BUILDAH_ISOLATION=chroot

for tool in buildah debootstrap npm; do
  command -v "$tool" >/dev/null || {
    echo "bases: SKIPPED, $tool not found" >&2
    exit 77
  }
done
npm=$(cd "$(dirname "$(readlink -f "$(command -v npm)")")/.." && pwd)
epoch=${SOURCE_DATE_EPOCH:-0}

build=$(buildah from scratch)
runtime=$(buildah from scratch)
cleanup() { buildah rm "$build" "$runtime" >/dev/null 2>&1 || true; }
trap cleanup EXIT

echo "bases: $build_name" >&2
root=$(buildah mount "$build")
debootstrap --variant=minbase "$suite" "$root" "$repository" >/dev/null
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*
install -m 755 node_modules/node/bin/node "$root/usr/local/bin/node"
cp -R "$npm" "$root/usr/local/lib/npm"
ln -s ../lib/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
mkdir -p "$root/etc/ssl/certs"
if [ -e /etc/ssl/certs/ca-certificates.crt ]; then
  cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  buildah config --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt "$build"
fi
buildah config --env PATH=/usr/local/bin:/usr/bin:/bin "$build"

echo "bases: $runtime_name" >&2
slim=$(buildah mount "$runtime")
mkdir -p "$slim/usr/local/bin" "$slim/etc" "$slim/tmp"
chmod 1777 "$slim/tmp"
cp "$root/usr/local/bin/node" "$slim/usr/local/bin/node"
# Each library at the path that the program uses; /lib and /lib64 are links in Debian, and folders here.
buildah run "$build" -- ldd /usr/local/bin/node | grep -o '/[^ ]*' | sort -u | while read -r library; do
  [ "$library" = /usr/local/bin/node ] || install -D -m 755 "$root$library" "$slim$library"
done
echo 'nonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin' >"$slim/etc/passwd"
echo 'nonroot:x:65532:' >"$slim/etc/group"
buildah config --env PATH=/usr/local/bin --user 65532:65532 "$runtime"

buildah commit --quiet --timestamp "$epoch" "$build" "$build_name" >/dev/null
buildah commit --quiet --timestamp "$epoch" "$runtime" "$runtime_name" >/dev/null
printf 'export BUILD_IMAGE=%s RUNTIME_IMAGE=%s\n' "$build_name" "$runtime_name"
