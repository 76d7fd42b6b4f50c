import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Deployment } from '../../../../src/api/builtin.ts';
import type { Foo, FooStatus } from '../../../../src/api/generated/foo.ts';
import {
  buildFooDeployment,
  fooSelector,
  deploymentProblem,
} from '../../../../src/controllers/foo/deployment.ts';
import {
  buildFooStatus,
  fooReadiness,
  isSyncedEventRecorded,
} from '../../../../src/controllers/foo/status.ts';

function aFoo(spec: object = {}, status?: FooStatus): Foo {
  return {
    apiVersion: 'samplecontroller.k8s.io/v1alpha1',
    kind: 'Foo',
    metadata: {
      name: 'foo',
      namespace: 'shop',
      uid: 'uid-of-foo',
      resourceVersion: '1',
      creationTimestamp: '2026-01-01T00:00:00Z',
      generation: 3,
    },
    spec: { deploymentName: 'web', replicas: 2, ...spec },
    ...(status ? { status } : {}),
  };
}

describe('The Deployment of a Foo', () => {
  it('has its name, replicas and owner, and no fields of other writers', () => {
    const labels = { app: 'nginx', controller: 'foo' };
    assert.deepEqual(buildFooDeployment(aFoo()), {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        name: 'web',
        namespace: 'shop',
        ownerReferences: [
          {
            apiVersion: 'samplecontroller.k8s.io/v1alpha1',
            kind: 'Foo',
            name: 'foo',
            uid: 'uid-of-foo',
            controller: true,
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        replicas: 2,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'nginx', image: 'nginx:latest' }] },
        },
      },
    });
    assert.equal(fooSelector(aFoo()), 'app=nginx,controller=foo');
  });

  it('has no replicas if the Foo has none', () => {
    const { spec } = buildFooDeployment(aFoo({ replicas: undefined }));
    assert.equal(Object.hasOwn(spec ?? {}, 'replicas'), false);
  });
});

describe('problemOf rejects a Foo', () => {
  for (const [what, spec] of [
    ['without a name', { deploymentName: '' }],
    ['whose name is too long for its ReplicaSet', { deploymentName: 'a'.repeat(243) }],
    ['whose name has capitals', { deploymentName: 'Web' }],
    ['whose name ends in a dash', { deploymentName: 'web-' }],
    ['whose name has an empty part', { deploymentName: 'a..b' }],
    ['with no replicas', { replicas: 0 }],
    ['with more than ten replicas', { replicas: 11 }],
  ] as const) {
    it(what, () => {
      assert.match(deploymentProblem(aFoo(spec)) ?? '', /^spec\./);
    });
  }

  it('but accepts the bounds of the fields', () => {
    for (const spec of [
      { deploymentName: 'a'.repeat(242) },
      { deploymentName: 'a.b-c.d' },
      { replicas: 1 },
      { replicas: 10 },
      { replicas: undefined },
    ]) {
      assert.equal(deploymentProblem(aFoo(spec)), undefined);
    }
  });
});

describe('The status of a Foo', () => {
  const deployment = (status: Deployment['status']): Deployment => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...aFoo().metadata, generation: 1 },
    spec: { replicas: 2, selector: {}, template: {} },
    ...(status ? { status } : {}),
  });
  const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' };
  const base = { observedGeneration: 1, replicas: 2, updatedReplicas: 2 } as const;

  it('follows the rollout of the Deployment', () => {
    assert.equal(fooReadiness(deployment(undefined)).kind, 'reconciling');
    const coming = fooReadiness(deployment({ ...base, availableReplicas: 1 }));
    assert.equal(coming.kind, 'reconciling');
    assert.equal(coming.message, '1 of 2 replicas are available');
    const ready = fooReadiness(deployment({ ...base, availableReplicas: 2 }));
    assert.equal(ready.kind, 'ready');
    const stalled = fooReadiness(deployment({ ...base, availableReplicas: 1, conditions: [late] }));
    assert.equal(stalled.kind, 'stalled');
    const complete = fooReadiness(
      deployment({ ...base, availableReplicas: 2, conditions: [late] }),
    );
    assert.equal(complete.kind, 'ready');
    // The Deployment controller has not observed the change yet.
    const behind = { ...base, observedGeneration: 0, availableReplicas: 2 };
    assert.equal(fooReadiness(deployment(behind)).kind, 'reconciling');
  });

  it('has the available replicas, the selector and the generation', () => {
    const status = buildFooStatus(
      aFoo(),
      { kind: 'ready', reason: 'DeploymentAvailable', message: 'fine' },
      deployment({ ...base, availableReplicas: 2 }),
      0,
    );
    assert.equal(status.availableReplicas, 2);
    assert.equal(status.observedGeneration, 3);
    assert.equal(status.selector, 'app=nginx,controller=foo');
    const without = { kind: 'stalled', reason: 'InvalidSpec', message: 'no' } as const;
    assert.equal(buildFooStatus(aFoo(), without, undefined, 0).availableReplicas, 0);
  });

  it('shows whether the Synced event of the generation was recorded', () => {
    const isRecorded = (
      observedGeneration: number | undefined,
      reason?: string,
      extra: object[] = [],
    ) => {
      const condition = { type: 'Ready', status: 'False', reason, message: '' };
      const conditions = [...extra, ...(reason === undefined ? [] : [condition])];
      return isSyncedEventRecorded(
        aFoo({}, { availableReplicas: 0, observedGeneration, conditions } as FooStatus),
      );
    };
    for (const reason of [
      'DeploymentAvailable',
      'DeploymentNotAvailable',
      'ProgressDeadlineExceeded',
    ]) {
      assert.equal(isRecorded(3, reason), true);
      assert.equal(isRecorded(2, reason), false);
      // Conditions of other writers are ignored.
      assert.equal(isRecorded(3, undefined, [{ type: 'Audited', status: 'True', reason }]), false);
      assert.equal(isRecorded(3, reason, [{ type: 'Audited', status: 'True', reason: 'X' }]), true);
    }
    assert.equal(isRecorded(3, 'InvalidSpec'), false);
    assert.equal(isRecorded(3), false);
    assert.equal(isSyncedEventRecorded(aFoo()), false);
    // The CustomResourceDefinition of sample-controller keeps only availableReplicas.
    assert.equal(isSyncedEventRecorded(aFoo({}, { availableReplicas: 0 })), true);
  });
});
