import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, test } from 'node:test';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS } from '../../../../src/api/builtin.ts';
import { isApiError } from '../../../../src/api/api-error.ts';
import { ClusterBench, NAMESPACE } from '../cluster-bench.ts';

describe('A PersistentVolume', () => {
  let bench: ClusterBench;
  beforeEach(async () => {
    bench = new ClusterBench();
    await bench.start({ controllers: ['persistentvolume-binder'] });
  });
  afterEach(() => bench.end());

  const createVolume = (name: string, storage: string, spec: object = {}) =>
    bench.create(PERSISTENT_VOLUMES, name, {
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage },
        csi: { driver: 'example.com', volumeHandle: name },
        ...spec,
      },
    });
  const createClaim = (name: string, storage: string, spec: object = {}) =>
    bench.create(PERSISTENT_VOLUME_CLAIMS, name, {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
    });
  const phases = async () =>
    Object.fromEntries(
      (await bench.list(PERSISTENT_VOLUMES)).map(({ metadata, status, spec }) => [
        metadata.name,
        [status?.phase, spec?.claimRef?.name],
      ]),
    );
  const claim = (name: string) => bench.get(PERSISTENT_VOLUME_CLAIMS, name);

  it('is bound to the claim that it fits best', async () => {
    await createVolume('large', '10Gi');
    await createVolume('small', '2Gi');
    await createVolume('other-class', '2Gi', { storageClassName: 'fast' });
    // Only available volumes are bound.
    await bench.pass(1000);
    await createClaim('first', '1Gi');
    await createClaim('second', '1Gi');
    await createClaim('too-large', '100Gi');
    await bench.pass(2000);
    assert.deepEqual(await phases(), {
      large: ['Bound', 'second'],
      small: ['Bound', 'first'],
      'other-class': ['Available', undefined],
    });
    const { spec, status, metadata } = await claim('first');
    assert.equal(spec?.volumeName, 'small');
    assert.deepEqual(status, {
      phase: 'Bound',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '2Gi' },
    });
    assert.equal(metadata.annotations?.['pv.kubernetes.io/bind-completed'], 'yes');
    assert.equal((await claim('too-large')).status?.phase, 'Pending');
  });

  for (const [title, given, wanted] of [
    ['storage class', {}, { storageClassName: 'fast' }],
    ['volume mode', { volumeMode: 'Block' }, {}],
    ['attributes class', {}, { volumeAttributesClassName: 'gold' }],
    ['access modes', {}, { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }],
    ['labels', {}, { selector: { matchLabels: { disk: 'ssd' } } }],
    ['capacity', { capacity: { storage: '1023Mi' } }, {}],
  ] as const) {
    it(`is not bound to a claim that needs another ${title}`, async () => {
      await createVolume('other', '1Gi', given);
      await createClaim('claim', '1Gi', wanted);
      await bench.pass(2000);
      assert.deepEqual(await phases(), { other: ['Available', undefined] });
      const spec = { ...wanted, selector: undefined, resources: undefined };
      const { metadata } = await createVolume('same', '1Gi', spec);
      const labels = { disk: 'ssd' };
      await bench.merge(PERSISTENT_VOLUMES, metadata.name, { metadata: { labels } });
      await bench.pass(2000);
      assert.deepEqual((await phases())['same'], ['Bound', 'claim']);
    });
  }

  it('is bound to the claim that it or the claim names', async () => {
    await createVolume('wanted', '10Gi');
    await createVolume('reserved', '1Gi', { claimRef: { namespace: NAMESPACE, name: 'named' } });
    await createClaim('naming', '1Gi', { volumeName: 'wanted' });
    await createClaim('named', '1Gi');
    await bench.pass(2000);
    assert.deepEqual(await phases(), {
      wanted: ['Bound', 'naming'],
      reserved: ['Bound', 'named'],
    });
  });

  it('is not bound to a claim that is being deleted', async () => {
    const finalizers = ['example.com/hold'];
    await bench.create(PERSISTENT_VOLUME_CLAIMS, 'ending', {
      metadata: { finalizers },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    await bench.client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, name: 'ending' });
    await createVolume('free', '1Gi');
    await bench.pass(2000);
    assert.deepEqual(await phases(), { free: ['Available', undefined] });
  });

  it('is released after its claim, and not deleted before', async () => {
    await createVolume('kept', '1Gi');
    await createVolume('deleted', '1Gi');
    await createClaim('one', '1Gi', { volumeName: 'kept' });
    await createClaim('other', '1Gi', { volumeName: 'deleted' });
    await bench.pass(2000);
    await bench.client.delete(PERSISTENT_VOLUMES, { name: 'deleted' });
    await bench.pass(2000);
    assert.deepEqual((await phases())['deleted'], ['Bound', 'other']);
    for (const name of ['one', 'other']) {
      await bench.client.delete(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, name });
    }
    await bench.pass(2000);
    // Another claim of the name does not get the data.
    await createClaim('one', '1Gi');
    await bench.pass(2000);
    assert.deepEqual(await phases(), { kept: ['Released', 'one'] });
    assert.equal((await claim('one')).spec?.volumeName, undefined);
    await bench.client.delete(PERSISTENT_VOLUMES, { name: 'kept' });
    await bench.pass(2000);
    await assert.rejects(bench.client.get(PERSISTENT_VOLUMES, { name: 'kept' }), (error) =>
      isApiError(error, 'notFound'),
    );
  });
});

test('a claim of an ephemeral volume is kept until its Pod has shut down', async () => {
  const bench = new ClusterBench();
  await bench.start({ controllers: ['persistentvolumeclaim-protection'] });
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
  const volumes = [{ name: 'data', ephemeral: { volumeClaimTemplate: { spec } } }];
  const finalizers = ['example.com/hold'];
  const pod = await bench.createPod('web', { nodeName: 'node-1', volumes }, { finalizers });
  const { metadata } = await bench.create(PERSISTENT_VOLUME_CLAIMS, 'web-data', { spec });
  await bench.pass(1000);
  for (const gracePeriodSeconds of [30, 0]) {
    assert.equal((await bench.list(PERSISTENT_VOLUME_CLAIMS)).length, 1);
    await bench.client.delete(PODS, pod.metadata, { gracePeriodSeconds });
    if (gracePeriodSeconds > 0) await bench.client.delete(PERSISTENT_VOLUME_CLAIMS, metadata);
    await bench.pass(2000);
  }
  assert.deepEqual(await bench.list(PERSISTENT_VOLUME_CLAIMS), []);
  await bench.end();
});
