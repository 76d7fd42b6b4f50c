import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HttpClient } from '../../../src/client/http-client.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { Access } from '../../support/access.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/** A client that may do nothing, and what it logs. */
function powerless() {
  const { log, lines } = recordingLogger();
  const clock = new FakeClock();
  const access = new Access(() => false);
  const handler = access.around(() => Promise.reject(new Error('allowed')));
  const client = new HttpClient({ server: 'https://simulated', handler, clock, log });
  const told = () => lines.filter(({ message }) => message === 'A permission is missing');
  return { client, clock, told };
}

test('a permission that is missing is told once, with the rule and a way to look', async () => {
  const { client, told } = powerless();
  for (const name of ['a', 'b']) {
    await assert.rejects(client.get(PODS, { namespace: 'default', name }));
  }
  assert.deepEqual(
    told().map(({ fields }) => fields),
    [
      {
        user: 'jane',
        namespace: 'default',
        rule: '{apiGroups: [""], resources: ["pods"], verbs: ["get"]}',
        fix: 'add the rule to a Role or ClusterRole of this user, and see: kubectl auth can-i get pods --namespace=default --as=jane',
      },
    ],
  );
});

test('each verb and namespace is another, and an hour later it is told again', async () => {
  const { client, clock, told } = powerless();
  const remove = (namespace: string) => client.delete(COUNTS, { namespace, name: 'a' });
  await assert.rejects(remove('a'));
  await assert.rejects(remove('b'));
  await assert.rejects(client.get(COUNTS, { namespace: 'a', name: 'a' }));
  assert.equal(told().length, 3);
  await clock.advance(3_600_000);
  await assert.rejects(remove('a'));
  assert.equal(told().length, 4);
});

test('lists and watches are left to the caches that make them', async () => {
  const { client, told } = powerless();
  await assert.rejects(client.list(PODS));
  await assert.rejects(client.watch(PODS));
  assert.deepEqual(told(), []);
});
