import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import type { Bounds } from '../support/bounds.ts';

const LOOSE: Bounds = { blockedMs: 60_000, memoryBytes: 2 ** 33, lifeMs: 60_000 };

/** Runs a piece of a program in a process with bounds. */
function run(bounds: Bounds, body: string): { readonly signal: string | null; stderr: string } {
  const bound = `import { boundThisProcess } from './test/support/bounds.ts';
    boundThisProcess(${JSON.stringify(bounds)});`;
  const { signal, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', bound + body],
    {
      cwd: `${import.meta.dirname}/../..`,
      encoding: 'utf8',
      timeout: 60_000,
      killSignal: 'SIGTERM',
    },
  );
  return { signal, stderr };
}

describe('A test process', () => {
  it('is killed if its event loop is blocked for too long', () => {
    const { signal, stderr } = run({ ...LOOSE, blockedMs: 300 }, 'for (;;);');
    assert.equal(signal, 'SIGKILL');
    assert.match(stderr, /event loop was blocked/);
  });

  it('is killed if it uses too much memory, also outside the heap', () => {
    const allocateForever =
      'const all = []; setInterval(() => all.push(Buffer.alloc(2 ** 25, 1)), 10);';
    const { signal, stderr } = run({ ...LOOSE, memoryBytes: 2 ** 28 }, allocateForever);
    assert.equal(signal, 'SIGKILL');
    assert.match(stderr, /more than 256 MiB/);
  });

  it('is killed if it does not end in time', () => {
    const { signal, stderr } = run({ ...LOOSE, lifeMs: 500 }, 'setInterval(() => undefined, 10);');
    assert.equal(signal, 'SIGKILL');
    assert.match(stderr, /lived for more than/);
  });

  it('ends by itself within its bounds', () => {
    assert.deepEqual(run(LOOSE, ''), { signal: null, stderr: '' });
  });
});
