import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DURATION,
  EXIT_CODE,
  containerStateAt,
  programOf,
} from '../../../src/cluster/fake-container.ts';

const run = (...command: string[]) => programOf({ name: 'app', command });
const job = (part: object) => ({ kind: 'job', runsMs: 0, exitCode: 0, log: '', ...part });

test('simple commands are simulated, and other containers run until they are stopped', () => {
  assert.deepEqual(run('echo', 'YAY', 'now'), job({ log: 'YAY now\n' }));
  assert.deepEqual(run('/bin/true'), job({}));
  assert.deepEqual(run('false'), job({ exitCode: 1 }));
  assert.deepEqual(run('sleep', '2.5'), job({ runsMs: 2500 }));
  assert.deepEqual(run('sh', '-c', 'exit 3'), job({ exitCode: 3 }));
  for (const words of [
    [],
    ['nginx'],
    ['sleep', 'infinity'],
    ['sh', '-c', 'exit 3 && true'],
    ['sh'],
  ]) {
    assert.deepEqual(run(...words), { kind: 'server' }, words.join(' '));
  }
  assert.deepEqual(programOf({ name: 'app', command: ['echo'], args: ['x'] }), job({ log: 'x\n' }));
});

test('annotations override the command', () => {
  const annotated = (annotations: Record<string, string>) =>
    programOf({ name: 'app', command: ['nginx'] }, annotations);
  assert.deepEqual(annotated({ [EXIT_CODE]: '3' }), job({ exitCode: 3 }));
  assert.deepEqual(annotated({ [DURATION]: '2.5' }), job({ runsMs: 2500 }));
  assert.deepEqual(annotated({ [DURATION]: 'soon' }), { kind: 'server' });
});

test('a container without restarts exits once', () => {
  const { state, changesAtMs } = containerStateAt(run('sleep', '2'), 'Never', 1000);
  assert.deepEqual([state.kind, changesAtMs], ['running', 2000]);
  assert.deepEqual(containerStateAt(run('sleep', '2'), 'Never', 2000), {
    state: { kind: 'ended', ended: { exitCode: 0, fromMs: 0, toMs: 2000 }, restarts: 0 },
    changesAtMs: undefined,
  });
  assert.equal(containerStateAt(run('true'), 'OnFailure', 0).state.kind, 'ended');
});

test('a container restarts after 10 s, 20 s and so on up to 5 min', () => {
  const at = (ms: number) => {
    const { state, changesAtMs } = containerStateAt(run('false'), 'OnFailure', ms);
    return [state.kind, state.restarts, changesAtMs];
  };
  assert.deepEqual(at(0), ['backingOff', 0, 10_000]);
  assert.deepEqual(at(10_000), ['backingOff', 1, 30_000]);
  assert.deepEqual(at(30_000), ['backingOff', 2, 70_000]);
  const pauses = Array.from({ length: 8 }, (_, restarts) => 10_000 * 2 ** restarts);
  const total = pauses.reduce((sum, ms) => sum + Math.min(ms, 300_000), 0);
  assert.deepEqual(at(total), ['backingOff', 8, total + 300_000]);
});

test('a restarted container has the result of its previous run', () => {
  assert.deepEqual(containerStateAt(run('sleep', '2'), 'Always', 13_000).state, {
    kind: 'running',
    sinceMs: 12_000,
    restarts: 1,
    last: { exitCode: 0, fromMs: 0, toMs: 2000 },
  });
});

test('a server never exits', () => {
  assert.deepEqual(containerStateAt(run('nginx'), 'Always', 1e9), {
    state: { kind: 'running', sinceMs: 0, restarts: 0 },
    changesAtMs: undefined,
  });
});
