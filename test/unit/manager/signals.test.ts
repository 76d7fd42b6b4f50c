import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { it } from 'node:test';
import { terminationSignal } from '../../../src/manager/signals.ts';
import { silentLogger } from '../../../src/util/logger.ts';

function fakeProcess() {
  const exits: number[] = [];
  return Object.assign(new EventEmitter(), {
    exits,
    exit: (code: number) => void exits.push(code),
  });
}

for (const name of ['SIGTERM', 'SIGINT'] as const) {
  it(`the first ${name} requests a graceful shutdown, and the second signal exits the process`, () => {
    const source = fakeProcess();
    const { signal } = terminationSignal(source, silentLogger);
    assert.equal(signal.aborted, false);
    source.emit(name, name);
    assert.equal(signal.aborted, true);
    assert.deepEqual(source.exits, []);
    source.emit('SIGINT', 'SIGINT');
    assert.deepEqual(source.exits, [1]);
  });
}

it('removes its listeners on dispose', () => {
  const source = fakeProcess();
  terminationSignal(source, silentLogger).dispose();
  assert.equal(source.listenerCount('SIGTERM') + source.listenerCount('SIGINT'), 0);
});
