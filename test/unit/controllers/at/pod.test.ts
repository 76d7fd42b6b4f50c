import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { At } from '../../../../src/api/generated/at.ts';
import { buildAtPod } from '../../../../src/controllers/at/pod.ts';

const AT: At = {
  apiVersion: 'cnat.programming-kubernetes.info/v1alpha1',
  kind: 'At',
  metadata: {
    name: 'x',
    namespace: 'default',
    uid: 'u',
    resourceVersion: '1',
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { schedule: '2026-01-01T00:00:00Z', command: 'echo' },
};

function commandOf(words: readonly string[]): readonly string[] {
  return buildAtPod(AT, words).spec?.containers[0]?.command ?? [];
}

/** Expands a word as the kubelet does, in a container in which every variable is set. */
function expanded(word: string): string {
  return word.replaceAll(/\$(\$|\([^)]*\))/g, (_, reference: string) =>
    reference === '$' ? '$' : 'EXPANDED',
  );
}

test('escapes words that the kubelet would expand', () => {
  assert.deepEqual(commandOf(['echo', '$HOME', '5$']), ['echo', '$HOME', '5$']);
  assert.deepEqual(commandOf(['$(HOME)', '$$']).map(expanded), ['$(HOME)', '$$']);
  const words = fc.array(fc.string({ unit: fc.constantFrom('$', '(', ')', 'A', ' ') }));
  fc.assert(fc.property(words, (list) => assert.deepEqual(commandOf(list).map(expanded), list)));
});

test('shortens a long name in the label of the Pod to what a label value may have', () => {
  const name = 'a'.repeat(200);
  const { labels } = buildAtPod({ ...AT, metadata: { ...AT.metadata, name } }, []).metadata;
  assert.match(labels?.['app.kubernetes.io/instance'] ?? '', /^a[-.\w]{1,61}\w$/);
});
