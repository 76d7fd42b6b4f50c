#!/usr/bin/env bash
# Runs the files of the image as its entrypoint does, away from the checkout.
#
#   hack/try-bundle.sh FOLDER
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
app=$(mktemp -d)
trap 'rm -rf "$app"' EXIT
cp -R "$1/." "$app"
cd "$app"

# ENTRYPOINT ["node", "--enable-source-maps", ...]: the Dockerfile is the only place that says it.
entrypoint=$(sed -n 's/^ENTRYPOINT //p' "$root/Dockerfile")
mapfile -t command < <("$root/node_modules/.bin/node" -p "$entrypoint.join('\n')")
command[0]="$root/node_modules/.bin/node"
command[-1]="$app/${command[-1]##*/}"

"${command[@]}" version
"${command[@]}" demo
