import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../../../src/api/api-error.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { logMissingPermissions } from '../../../src/client/missing-permissions.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { Access } from '../../support/access.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

/** A client whose requests are all denied, and its log. */
function newDeniedClient() {
  const { log, lines } = recordingLogger();
  const clock = new FakeClock();
  const access = new Access(() => false);
  const handler = access.around(() => Promise.reject(new Error('allowed')));
  const client = new HttpClient({ server: 'https://simulated', handler, clock, log });
  const logged = () => lines.filter(({ message }) => message === 'A permission is missing');
  return { client, clock, logged };
}

test('logs a permission that stays missing once, with the rule and the command that checks it', async () => {
  const { client, clock, logged } = newDeniedClient();
  for (const name of ['a', 'b', 'c', 'd']) {
    await assert.rejects(client.get(PODS, { namespace: 'default', name }));
    await clock.advance(6000);
  }
  assert.deepEqual(
    logged().map(({ fields }) => fields),
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

test('logs no missing permission while a starting server reads its roles', async () => {
  const { client, clock, logged } = newDeniedClient();
  for (let attempt = 0; attempt < 9; attempt++) {
    await assert.rejects(client.get(PODS, { namespace: 'default', name: 'a' }));
    await clock.advance(1000);
  }
  assert.deepEqual(logged(), []);
  await clock.advance(3_600_000);
  await assert.rejects(client.get(PODS, { namespace: 'default', name: 'a' }));
  assert.deepEqual(logged(), [], 'a denial an hour later starts a new period');
});

test('logs each verb and namespace separately, and again after an hour of denials', async () => {
  const { client, clock, logged } = newDeniedClient();
  const refused = async () => {
    for (const namespace of ['a', 'b']) {
      await assert.rejects(client.delete(COUNTS, { namespace, name: 'a' }));
    }
    await assert.rejects(client.get(COUNTS, { namespace: 'a', name: 'a' }));
  };
  await refused();
  await clock.advance(10_000);
  await refused();
  assert.equal(logged().length, 3);
  for (let minute = 0; minute < 50; minute += 10) {
    await clock.advance(600_000);
    await refused();
  }
  assert.equal(logged().length, 3);
  await clock.advance(600_000);
  await refused();
  assert.equal(logged().length, 6);
});

test('leaves lists and watches to the caches, which log them', async () => {
  const { client, logged } = newDeniedClient();
  await assert.rejects(client.list(PODS));
  await assert.rejects(client.watch(PODS));
  assert.deepEqual(logged(), []);
});

test('logs each user separately', async () => {
  const { log, lines } = recordingLogger();
  const clock = new FakeClock();
  const report = logMissingPermissions(log, clock);
  for (let attempt = 0; attempt < 2; attempt++) {
    for (const user of ['jane', 'john']) {
      const message = `pods "a" is forbidden: User "${user}" cannot get resource "pods" in API group "" in the namespace "b"`;
      report(new ApiError({ kind: 'forbidden', message }));
    }
    await clock.advance(10_000);
  }
  assert.deepEqual(
    lines.map(({ fields }) => fields['user']),
    ['jane', 'john'],
  );
});
