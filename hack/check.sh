#!/usr/bin/env bash
# Runs all checks that a change must pass. Stops at the first step that fails and prints its output.
#
#   hack/check.sh          every step
#   hack/check.sh STEP...  the given steps: format, types, lint, generated, tests, package
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PWD/node_modules/.bin:$PATH"

output=$(mktemp)
trap 'rm -f "$output"' EXIT

format() { prettier --check --log-level warn .; }
types() { npm run --silent types; }
lint() { npm run --silent lint && node hack/words.ts; }
generated() {
  node hack/generate-types.ts --check && node hack/generate-manifests.ts --check &&
    node hack/generate-builtin-kinds.ts --check && node hack/generate-json-scan.ts --check &&
    node hack/generate-api-examples.ts --check && node hack/generate-api-report.ts --check
}
tests() { npm run test:all; }
package() { npm run build && publint --strict; }

steps=("$@")
[ ${#steps[@]} -gt 0 ] || steps=(format types lint generated tests package)

for step in "${steps[@]}"; do
  case $step in
    format | types | lint | generated | tests | package) ;;
    *)
      echo "check: unknown step $step" >&2
      exit 2
      ;;
  esac
  started=$SECONDS
  # Not in an if statement, which would disable set -e inside the step.
  set +e
  (
    set -e
    "$step"
  ) >"$output" 2>&1
  status=$?
  set -e
  if [ "$status" -ne 0 ]; then
    cat "$output"
    echo "check: $step failed"
    exit 1
  fi
  echo "check: $step ok ($((SECONDS - started)) s)"
  # Skipped tests are shown, because they are not passed.
  if [ "$step" = tests ]; then grep -E '^ℹ (tests|pass|skipped) |# SKIP' "$output" || true; fi
done
