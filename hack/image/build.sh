#!/usr/bin/env bash
# Builds the container image and records its sources.
#
#   hack/image/build.sh [NAME[:TAG]]        default: crd-controller:VERSION
#
# $ENGINE is docker, podman or buildah; by default the first that works. $BUILD_IMAGE and $RUNTIME_IMAGE
# are the base images: hack/image/bases.sh creates some without a registry. The time in the image is that
# of the commit, or $SOURCE_DATE_EPOCH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)
if [ "$revision" != unknown ] && [ -n "$(git status --porcelain)" ]; then revision=$revision-dirty; fi
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
# The URL of the origin, without credentials.
source=$(git remote get-url origin 2>/dev/null | sed -n '\#^[a-z+]*://#{s#//[^/@]*@#//#;p}' || true)
name=${1:-crd-controller:$version}

works() {
  case $1 in
    docker) docker info ;;
    podman) podman info ;;
    buildah) buildah version ;;
    *) false ;;
  esac >/dev/null 2>&1
}
engine=${ENGINE:-}
if [ -z "$engine" ]; then
  for each in docker podman buildah; do
    if works "$each"; then
      engine=$each
      break
    fi
  done
fi
[ -n "$engine" ] || {
  echo "build: no working engine found; install docker, podman or buildah" >&2
  exit 1
}

args=(
  --build-arg "VERSION=$version"
  --build-arg "REVISION=$revision"
  --build-arg "SOURCE_DATE_EPOCH=$epoch"
  --label "org.opencontainers.image.created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)"
  --tag "$name"
)
[ -z "$source" ] || args+=(--label "org.opencontainers.image.source=$source")
[ -z "${BUILD_IMAGE:-}" ] || args+=(--build-arg "BUILD_IMAGE=$BUILD_IMAGE")
[ -z "${RUNTIME_IMAGE:-}" ] || args+=(--build-arg "RUNTIME_IMAGE=$RUNTIME_IMAGE")
case $engine in
  docker) command=(docker build) ;;
  # These engines set the time of every file and of the image, and need no daemon.
  *) command=("$engine" build --timestamp "$epoch") ;;
esac
echo "build: $engine builds $name of $revision" >&2
exec "${command[@]}" "${args[@]}" --file Dockerfile .
