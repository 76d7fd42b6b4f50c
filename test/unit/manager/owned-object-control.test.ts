import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { controllerReference } from '../../../src/api/metadata.ts';
import { OwnedObjectControl } from '../../../src/manager/owned-object-control.ts';
import { NAMESPACE, SyncBench } from '../../support/sync-bench.ts';

test('records only what it has created or deleted itself', async () => {
  const bench = await SyncBench.with();
  const metadata = { name: 'owner', namespace: NAMESPACE };
  const typed = { apiVersion: 'v1', kind: 'ConfigMap' };
  const owner = await bench.create(CONFIG_MAPS, { ...typed, metadata });
  const { recorder } = bench;
  const control = new OwnedObjectControl(CONFIG_MAPS, CONFIG_MAPS, { recorder, fieldManager: 'x' });
  const ownerReferences = [controllerReference(owner)];
  const desired = { ...typed, metadata: { ...metadata, name: 'owned', ownerReferences } };
  const created: string[] = [];
  const create = () =>
    control.create(bench.context, owner, { desired, cached: undefined }, (object) =>
      created.push(object.metadata.name),
    );
  assert.equal(await create(), undefined);
  assert.equal(await create(), undefined, 'the cache is old');
  const owned = await bench.get(CONFIG_MAPS, 'owned');
  for (let time = 0; time < 2; time++) {
    assert.equal(await control.delete(bench.context, owner, owned), undefined);
  }
  assert.deepEqual(created, ['owned']);
  assert.deepEqual(
    bench.events.map((event) => event.split(':')[0]),
    ['Normal SuccessfulCreate', 'Normal SuccessfulDelete'],
  );
});
