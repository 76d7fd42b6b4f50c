#!/usr/bin/env bash
# Runs the files of the image with its entrypoint, outside the checkout. Checks that log lines name their lines
# in the source, and that the files are reproducible in another folder.
#
#   hack/try-bundle.sh FOLDER
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
given=$(cd "$1" && pwd)
app=$(mktemp -d)
again=$root/dist/again/deeper
trap 'rm -rf "$app" "$root/dist/again"' EXIT
cp -R "$given/." "$app"
cd "$app"

# ENTRYPOINT ["node", ...] from the Dockerfile, its only definition.
entrypoint=$(sed -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' "$root/Dockerfile" | sed -n 's/^ENTRYPOINT //p')
mapfile -t command < <("$root/node_modules/.bin/node" -p "$entrypoint.join('\n')")
command[0]="$root/node_modules/.bin/node"
command[-1]="$app/${command[-1]##*/}"

"${command[@]}" version
"${command[@]}" demo -v=4 --add-dir-header 2>demo.log || {
  cat demo.log
  exit 1
}

"$root/hack/try-page.sh" "${command[@]}"

shopt -s globstar
places=$(grep -oE '[^ ]+/[^ ]+:[0-9]+\]' demo.log | sort -u)
[ "$(wc -l <<<"$places")" -gt 10 ]
while IFS=:] read -r file line _; do
  if ! sed -n "${line}p" "$root"/src/**/"$file" | grep -qE '\.(info|error)\('; then
    echo "log lines: no log call at $file:$line"
    exit 1
  fi
done <<<"$places"
echo "log lines: $(wc -l <<<"$places") places, all in the source"

# Links to the same packages, because the paths of a linked folder would be those of its target.
rm -rf "$root/dist/again"
mkdir -p "$again"
cp -R "$root"/{package.json,package-lock.json,LICENSE,src,crds,examples,hack} "$again"
cp -Rl "$root/node_modules" "$again"
(cd "$again" && "$root/node_modules/.bin/node" hack/bundle.ts)

diff -r "$given" "$again/dist/image" >&2
echo "reproducible: $(find "$given" -type f | wc -l) files, the same from another folder"
