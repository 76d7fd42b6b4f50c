#!/usr/bin/env bash
# Requests the debug page of a built program, whose source is not there: script and style must be in the document.
#
#   hack/try-page.sh COMMAND...
set -euo pipefail

output=$(mktemp)
"$@" serve --web >"$output" 2>&1 &
serving=$!
trap 'kill "$serving" 2>/dev/null || true; rm -f "$output"' EXIT
for _ in {1..120}; do
  url=$(grep -oE 'http://[0-9.:]+/debug/' "$output") && break
  kill -0 "$serving" || break
  sleep 0.5
done
page=$(curl -fsS --max-time 10 --noproxy '*' "${url:?$(cat "$output")}")
cluster=$(curl -fsS --max-time 10 --noproxy '*' "${url}cluster")
grep -q '"revision"' <<<"$cluster"
script=${page#*<script type=\"module\">}
style=${page#*<style>}
for part in "${script%%</script>*}" "${style%%</style>*}"; do
  if [ "${#part}" -lt 5000 ] || [ "${#part}" -eq "${#page}" ]; then
    echo "debug page: the document has no script or no style"
    exit 1
  fi
done
echo "debug page: ${#page} bytes, with its script and style"
