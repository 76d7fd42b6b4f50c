import assert from 'node:assert/strict';

const POLL_MS = 20;
const PATIENCE_MS = 60_000;

/** Calls a function repeatedly in real time until it returns a value, and resolves to it. */
export async function until<R>(what: string, look: () => Promise<R | undefined>): Promise<R> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(performance.now() < deadlineMs, `${what}: not within ${PATIENCE_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
