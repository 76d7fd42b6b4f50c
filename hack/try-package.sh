#!/usr/bin/env bash
# Installs a packed tarball as a user does, and checks the bin and its log, all exports and their types, the bin
# on an old Node.js (if this machine has one), and a new controller from `init` to a reconciled object.
#
#   hack/try-package.sh TARBALL EMPTY_FOLDER
set -euo pipefail

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/../node_modules/.bin" && pwd)
tarball=$(realpath "$1")
mkdir -p "$2"
cd "$2"

echo '{ "name": "user", "version": "0.0.0", "private": true, "type": "module" }' >package.json
npm install --no-audit --no-fund --loglevel=error "$tarball" >/dev/null

echo "bin: $(PATH="$tools:$PATH" ./node_modules/.bin/crd-controller version)"

PATH="$tools:$PATH" "$tools/../../hack/try-page.sh" ./node_modules/.bin/crd-controller

# The size that the documentation promises, without what the file system adds to small files.
size=$(find node_modules/crd-controller -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum }')
echo "size: $size bytes"
[ "$size" -le 8000000 ]

# A log line of compiled code names the file and line of the source.
place=$(PATH="$tools:$PATH" ./node_modules/.bin/crd-controller --once --kubeconfig=/nonexistent -v=1 2>&1 |
  sed -n 's/^.* command-line\.ts:\([0-9]*\)\] "Flags".*$/\1/p' || true)
sed -n "${place:?no log line}p" "$tools/../../src/cli/command-line.ts" | grep -qF "info('Flags'"
echo "log lines: ok"

# Every entry point of the package exports something.
"$tools/node" -e '
  const { exports } = require("./node_modules/crd-controller/package.json");
  const names = Object.keys(exports).filter((path) => !path.endsWith(".json"));
  const modules = names.map((path) => path.replace(".", "crd-controller"));
  console.log(modules.map((name, i) => `import * as m${i} from "${name}";`).join("\n"));
  console.log(`for (const [i, names] of [${modules.map((_, i) => `m${i}`)}].entries())`);
  console.log("  if (Object.keys(names).length === 0) throw new Error(`entry point ${i} is empty`);");
' >user.ts
"$tools/node" user.ts

# Checks all types of this package, also unused ones. Errors in dependencies are ignored.
complaints=$("$tools/tsc" --noEmit --strict --module nodenext --target es2024 user.ts |
  grep -E '^(user\.ts|node_modules/crd-controller/)' || true)
echo "types: ${complaints:-ok}"
[ -z "$complaints" ]

old=$(node --version)
if node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 22 || (a == 22 && b >= 19) ? 1 : 0)'; then
  status=0
  output=$(./node_modules/.bin/crd-controller version 2>&1) || status=$?
  echo "bin on Node.js $old: $output (exit $status)"
  [ "$status" -eq 1 ]
  [ "$(wc -l <<<"$output")" -eq 1 ]
else
  echo "bin on an old Node.js: SKIPPED, this machine has $old"
fi

# The Tenant operator of the book.
"$tools/node" "$tools/../../hack/docs/follow-book.ts" "$PWD"

# A project of `init` in an empty folder; it depends on the tarball that contains `init`.
crd_controller=$PWD/node_modules/.bin/crd-controller
mkdir project
cd project
PATH="$tools:$PATH"
"$crd_controller" init Website --group=acme.org --webhooks >/dev/null
"$crd_controller" init --add HTTPPolicy >/dev/null
"$crd_controller" init Website --add --api-version=v1 >/dev/null
"$crd_controller" init HTTPPolicy --add --webhooks >/dev/null
npm install --no-audit --no-fund --loglevel=error >/dev/null
npm test 2>&1 | grep -E '^ℹ (pass|fail)'
npm run --silent types && echo "init: types ok"
npm run --silent generate -- --check && echo "init: generated modules are fresh"
npm run --silent rbac -- --check && echo "init: roles are exact"
npm run --silent chart | grep -c '^dist/chart/templates/' | sed 's/^/init: templates of the chart: /'
npm run --silent dashboard >/dev/null && npm run --silent dashboard -- --check
# The same with kinds in TypeScript.
"$crd_controller" init Page --group=acme.org --schema=ts --dir=../kinds >/dev/null
ln -s "$PWD/node_modules" ../kinds/node_modules
(cd ../kinds && npm test 2>&1 | grep -E '^ℹ (pass|fail)' && npm run --silent types && npm run --silent generate -- --check)
npm run --silent manifests | grep -c '^kind: ' | sed 's/^/init: manifests: /'

# `npm start` runs until it is stopped, when the sample is ready.
expected='Website default/website-sample: 2 of 2 replicas are available'
set -m
npm start >start.out 2>start.log &
started=$!
set +m
for _ in {1..120}; do
  if grep -qF "$expected" start.out || ! kill -0 "$started" 2>/dev/null; then break; fi
  sleep 0.5
done
# The process group, because npm does not forward signals.
kill -- "-$started" 2>/dev/null || true
wait "$started" || true
grep -F "$expected" start.out || {
  cat start.out start.log
  exit 1
}
