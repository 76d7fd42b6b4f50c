import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../../../../src/api/builtin.ts';
import { NodeUsage } from '../../../../src/cluster/nodes/node-usage.ts';

function podOf(uid: string, nodeName?: string, phase: string = 'Running'): Pod {
  const containers = [{ name: 'app', image: 'a', resources: { requests: { cpu: '1' } } }];
  return {
    metadata: { name: 'web', uid },
    spec: { containers, ...(nodeName && { nodeName }) },
    status: { phase },
  } as unknown as Pod;
}

test('a node has the requests of its Pods until they end, are deleted or are replaced', () => {
  const usage = new NodeUsage();
  const { handler } = usage;
  const uids = () => Array.from(usage.podsOn('n'), ({ metadata }) => metadata.uid);
  const pods = () => usage.requestedOn('n').get('pods') ?? 0n;
  const expect = (...expected: readonly string[]) => {
    assert.deepEqual(uids(), expected);
    assert.equal(pods(), BigInt(expected.length) * 10n ** 9n);
  };
  handler.onAdd?.(podOf('a', 'n'), true);
  expect('a');
  handler.onUpdate?.(podOf('a', 'n'), podOf('b'));
  expect();
  usage.assume(podOf('b'), 'n');
  handler.onUpdate?.(podOf('b'), podOf('b'));
  expect('b');
  handler.onUpdate?.(podOf('b'), podOf('b', 'n'));
  expect('b');
  handler.onUpdate?.(podOf('b', 'n'), podOf('b', 'n', 'Succeeded'));
  expect();
  handler.onAdd?.(podOf('c', 'n'), false);
  handler.onDelete?.(podOf('c', 'n'), true);
  expect();
});
