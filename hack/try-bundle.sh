#!/usr/bin/env bash
# Runs the files of the image as its entrypoint does, away from the checkout, and looks whether its log
# lines name the lines of the source that they come from.
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
"${command[@]}" demo -v=4 --add-dir-header 2>demo.log || {
  cat demo.log
  exit 1
}

shopt -s globstar
places=$(grep -oE '[^ ]+/[^ ]+:[0-9]+\]' demo.log | sort -u)
[ "$(wc -l <<<"$places")" -gt 10 ]
while IFS=:] read -r file line _; do
  if ! sed -n "${line}p" "$root"/src/**/"$file" | grep -qE '\.(info|error)\('; then
    echo "log lines: nothing is logged at $file:$line"
    exit 1
  fi
done <<<"$places"
echo "log lines: $(wc -l <<<"$places") places, all in the source"
