import { podLabels } from '../../src/controllers/count/pods.ts';
import type { Pod } from '../../src/api/builtin.ts';
import { timestamp } from '../../src/api/conditions.ts';
import type { Count } from '../../src/api/generated/count.ts';
import { controllerReference } from '../../src/api/metadata.ts';

/** Creates stored objects, for tests of pure functions. */

let uids = 0;

export function aCount(overrides: { name?: string; spec?: Partial<Count['spec']> } = {}): Count {
  const name = overrides.name ?? 'test-count';
  return {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: {
      name,
      namespace: 'default',
      uid: `count-${uids++}`,
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: timestamp(0),
    },
    spec: { name: 'nginx', count: 3, ...overrides.spec },
  };
}

export interface PodTraits {
  readonly name?: string;
  readonly image?: string;
  readonly ready?: boolean;
  readonly phase?: NonNullable<NonNullable<Pod['status']>['phase']>;
  readonly deleting?: boolean;
}

/** A Pod that `owner` controls. */
export function aPodOf(owner: Count, ordinal: number, traits: PodTraits = {}): Pod {
  const { image = owner.spec.name, ready = true, phase = 'Running', deleting = false } = traits;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: traits.name ?? `${owner.metadata.name}-${ordinal}`,
      namespace: 'default',
      uid: `pod-${uids++}`,
      resourceVersion: '1',
      creationTimestamp: timestamp(0),
      labels: podLabels(owner),
      ownerReferences: [controllerReference(owner)],
      ...(deleting ? { deletionTimestamp: timestamp(0) } : {}),
    },
    spec: { containers: [{ name: 'app', image }] },
    status: { phase, conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  };
}
