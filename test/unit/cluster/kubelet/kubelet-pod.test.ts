import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KubeletPod } from '../../../../src/cluster/kubelet/kubelet-pod.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';

test('a container keeps its files until it restarts', () => {
  const pod = new KubeletPod('uid', new FakeClock());
  const files = pod.files({ name: 'app' }, 0);
  assert.equal(pod.files({ name: 'app' }, 0), files);
  assert.notEqual(pod.files({ name: 'other' }, 0), files);
  const next = pod.files({ name: 'app' }, 1);
  assert.notEqual(next, files);
  assert.equal(pod.files({ name: 'app' }, 1), next);
});
