import assert from 'node:assert/strict';
import { test } from 'node:test';
import { containerStateAt } from '../../../../src/cluster/kubelet/container-state.ts';
import { programOf } from '../../../../src/cluster/kubelet/simulated-program.ts';

const run = (...command: string[]) => programOf({ name: 'app', command });

test('annotations override the command', () => {
  const forecast = (annotations: Record<string, string>, ...command: string[]) =>
    programOf({ name: 'app', command }, { annotations }).forecast(1000);
  const end = (atMs: number, exitCode: number) => ({ kind: 'ends', atMs, exitCode });
  const part = ({ kind, atMs, exitCode }: Partial<ReturnType<typeof end>>) => ({
    kind,
    atMs,
    exitCode,
  });
  assert.deepEqual(part(forecast({ 'kubelet.crd-controller/exit-code': '3' }, 'nginx')), end(0, 3));
  assert.deepEqual(
    part(forecast({ 'kubelet.crd-controller/duration': '2.5' }, 'nginx')),
    end(2500, 0),
  );
  assert.deepEqual(
    part(forecast({ 'kubelet.crd-controller/exit-code': '3' }, 'sleep', '2')),
    end(2000, 3),
  );
  assert.deepEqual(
    part(forecast({ 'kubelet.crd-controller/duration': '1' }, 'false')),
    end(1000, 1),
  );
  const unchanged = { kind: 'runs', untilMs: Infinity };
  assert.deepEqual(forecast({ 'kubelet.crd-controller/duration': 'soon' }, 'nginx'), unchanged);
});

test('arguments and environment variables are part of the command', () => {
  const environment = new Map([['NAME', 'Ada']]);
  const container = { name: 'app', command: ['echo'], args: ['$(NAME)', '$$(NAME)', '$(OTHER)'] };
  assert.deepEqual(programOf(container, { environment }).outputs(-1, 0), [
    { atMs: 0, text: 'Ada $(NAME) $(OTHER)\n' },
  ]);
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
