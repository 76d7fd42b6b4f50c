import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { ObjectStore } from '../../../../src/apiserver/storage/object-store.ts';
import { StoreLog } from '../../../../src/apiserver/storage/store-log.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';
import { Api, CONFIG_MAPS, COUNTS, CRDS, apiWithCounts, configMap, count } from '../api-client.ts';

function temporaryFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'store-log-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The state of a killed process: a new server reads the folder while the old one was not closed. */
function afterKill(dataDir: string): Api {
  return new Api({ dataDir });
}

/** Returns the path of the newest log file. */
function logFile(dataDir: string): string {
  const name = readdirSync(dataDir)
    .filter((each) => each.endsWith('.log'))
    .sort()
    .at(-1);
  return join(dataDir, name ?? '');
}

describe('A server with a data folder', () => {
  test('has the same objects, uids and revision after it was killed', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    await api.post(CONFIG_MAPS, configMap('kept'));
    await api.post(CONFIG_MAPS, configMap('deleted'));
    await api.patch(`${CONFIG_MAPS}/kept`, { data: { a: 'ä€\u{1f600}\n' } });
    await api.delete(`${CONFIG_MAPS}/deleted`);
    const next = afterKill(dataDir);
    assert.equal(next.server.revision, api.server.revision);
    for (const path of [CONFIG_MAPS, '/api/v1/namespaces', '/api/v1/services']) {
      assert.deepEqual((await next.get(path)).body, (await api.get(path)).body);
    }
    const created = await next.post(CONFIG_MAPS, configMap('new'));
    assert.equal(created.body.metadata.resourceVersion, String(api.server.revision + 1));
  });

  test('resumes watches and pages from before the restart', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    await api.post(CONFIG_MAPS, configMap('a'));
    await api.post(CONFIG_MAPS, configMap('b'));
    const { body: page } = await api.get(`${CONFIG_MAPS}?limit=1`);
    const { resourceVersion } = page.metadata;
    await api.patch(`${CONFIG_MAPS}/a`, { data: { a: 'changed' } });
    await api.delete(`${CONFIG_MAPS}/b`);
    const next = afterKill(dataDir);
    const watch = await next.watch(`${CONFIG_MAPS}?resourceVersion=${resourceVersion}`);
    assert.deepEqual(await watch.said(), ['MODIFIED a', 'DELETED b']);
    await watch.stop();
    const rest = await next.get(`${CONFIG_MAPS}?limit=1&continue=${page.metadata.continue}`);
    assert.deepEqual(
      rest.body.items.map((each: { metadata: { name: string } }) => each.metadata.name),
      ['b'],
    );
  });

  test('serves the kinds of its CRDs again, with the current schema', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = await apiWithCounts({ dataDir });
    await api.post(COUNTS, count('a'));
    const before = await api.get(COUNTS);
    const next = afterKill(dataDir);
    assert.deepEqual((await next.get(COUNTS)).body, before.body);
    assert.equal(next.server.revision, api.server.revision);
  });

  test('authorizes users by the stored bindings', async (context) => {
    const dataDir = temporaryFolder(context);
    const rbac = 'rbac.authorization.k8s.io';
    await new Api({ dataDir }).post(`/apis/${rbac}/v1/clusterrolebindings`, {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: 'view' },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: rbac, kind: 'User', name: 'jane' }],
    });
    const next = afterKill(dataDir);
    assert.equal((await next.get(CONFIG_MAPS, { 'impersonate-user': 'jane' })).status, 200);
    assert.equal((await next.get(CONFIG_MAPS, { 'impersonate-user': 'joe' })).status, 403);
  });

  test('reads objects with a default that the CRD got after they were stored', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = await apiWithCounts({ dataDir });
    await api.post(COUNTS, count('a'));
    const crd = `${CRDS}/counts.demo.mark8s.io`;
    const { body } = await api.get(crd);
    const schema = body.spec.versions[0].schema.openAPIV3Schema;
    schema.properties.spec.properties.added = { type: 'string', default: 'x' };
    assert.equal((await api.put(crd, body)).status, 200);
    const item = async (of: Api) => (await of.get(`${COUNTS}/a`)).body.spec.added;
    assert.equal(await item(api), 'x');
    assert.equal(await item(afterKill(dataDir)), 'x');
  });

  test('finishes the deletion of a CRD that the end of the process interrupted', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = await apiWithCounts({ dataDir });
    await api.post(COUNTS, count('a'));
    const size = statSync(logFile(dataDir)).size;
    await api.delete(`${CRDS}/counts.demo.mark8s.io`);
    // Only the first write of the deletion was stored.
    const text = readFileSync(logFile(dataDir));
    truncateSync(logFile(dataDir), text.indexOf('\n', size) + 1);
    const next = afterKill(dataDir);
    assert.equal((await next.get(`${CRDS}/counts.demo.mark8s.io`)).status, 404);
    assert.equal((await next.get(COUNTS)).status, 404);
  });

  test('creates the initial objects that the end of the process prevented', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    const path = logFile(dataDir);
    const lines = readFileSync(path, 'utf8').split('\n');
    writeFileSync(path, `${lines.slice(0, 4).join('\n')}\n`);
    const next = afterKill(dataDir);
    const namesOf = async (of: Api, kind: string) =>
      (await of.get(kind)).body.items.map(
        ({ metadata }: { metadata: { name: string } }) => metadata.name,
      );
    for (const kind of ['/api/v1/namespaces', '/apis/rbac.authorization.k8s.io/v1/clusterroles']) {
      assert.deepEqual(await namesOf(next, kind), await namesOf(api, kind));
    }
  });

  test('removes an incomplete last line, at every length', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    await api.post(CONFIG_MAPS, configMap('a'));
    const path = logFile(dataDir);
    const before = statSync(path).size;
    const { revision } = api.server;
    await api.post(CONFIG_MAPS, configMap('torn'));
    const bytes = readFileSync(path);
    for (const length of [before + 1, before + 9, before + 100, bytes.length - 1]) {
      writeFileSync(path, bytes.subarray(0, length));
      const next = afterKill(dataDir);
      assert.equal(next.server.revision, revision);
      assert.equal(statSync(path).size, before);
      assert.equal((await next.get(`${CONFIG_MAPS}/a`)).status, 200);
    }
    assert.equal((await afterKill(dataDir).post(CONFIG_MAPS, configMap('torn'))).status, 201);
    assert.equal(afterKill(dataDir).server.revision, revision + 1);
  });

  test('rejects a damaged or a missing line with the file and the offset', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    await api.post(CONFIG_MAPS, configMap('a'));
    const path = logFile(dataDir);
    const offset = statSync(path).size;
    await api.post(CONFIG_MAPS, configMap('b'));
    const next = statSync(path).size;
    await api.post(CONFIG_MAPS, configMap('c'));
    const bytes = readFileSync(path);
    const refusal = (reason: string) => (error: unknown) =>
      error instanceof Error &&
      error.message.startsWith(`${path} is corrupt at offset ${offset}: ${reason}`);
    const flipped = Buffer.from(bytes);
    flipped[offset + 50]! ^= 1;
    writeFileSync(path, flipped);
    assert.throws(() => afterKill(dataDir), refusal('the checksum does not match'));
    assert.deepEqual(readFileSync(path), flipped, 'the file is unchanged');
    writeFileSync(path, Buffer.concat([bytes.subarray(0, offset), bytes.subarray(next)]));
    assert.throws(() => afterKill(dataDir), refusal('lines are missing'));
    writeFileSync(path, bytes);
    assert.equal(afterKill(dataDir).server.revision, api.server.revision);
  });

  test('keeps a restored snapshot, not what it replaced', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    await api.post(CONFIG_MAPS, configMap('a'));
    const snapshot = api.server.faults.snapshot();
    await api.post(CONFIG_MAPS, configMap('b'));
    api.server.faults.restore(snapshot);
    const next = afterKill(dataDir);
    assert.equal(next.server.revision, snapshot.revision);
    assert.equal((await next.get(`${CONFIG_MAPS}/b`)).status, 404);
    assert.equal((await next.get(`${CONFIG_MAPS}/a`)).status, 200);
  });

  test('rejects writes after close and releases the folder', async (context) => {
    const dataDir = temporaryFolder(context);
    const api = new Api({ dataDir });
    assert.ok(existsSync(join(dataDir, 'lock')));
    await api.server.close();
    assert.ok(!existsSync(join(dataDir, 'lock')));
    const { revision } = api.server;
    assert.equal((await api.post(CONFIG_MAPS, configMap('late'))).status, 500);
    assert.equal(api.server.revision, revision);
    assert.equal((await api.get(`${CONFIG_MAPS}/late`)).status, 404);
  });

  test('rejects a folder that another process uses, and replaces the lock of an ended one', (context) => {
    const dataDir = temporaryFolder(context);
    writeFileSync(join(dataDir, 'lock'), `${process.ppid}\n`);
    assert.throws(() => new Api({ dataDir }), /is used by the process \d+/);
    writeFileSync(join(dataDir, 'lock'), `${2 ** 22 + 1}\n`);
    assert.equal(new Api({ dataDir }).server.watches, 0);
    assert.equal(readFileSync(join(dataDir, 'lock'), 'utf8'), `${process.pid}\n`);
  });
});

describe('StoreLog', () => {
  const PODS = { group: '', plural: 'pods' };
  const open = (folder: string, fileBytes: number) => {
    const log = new StoreLog(folder, { clock: new FakeClock(), log: silentLogger, fileBytes });
    const store = new ObjectStore({ log });
    const pods = store.collection(PODS);
    store.load();
    return { store, pods, log };
  };
  const pod = (name: string, value: number) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'x', uid: name, resourceVersion: '', creationTimestamp: '' },
    value,
  });

  test('bounds the files and keeps all objects and at least the history of one file', (context) => {
    const folder = temporaryFolder(context);
    const { store, pods, log } = open(folder, 10_000);
    for (let value = 0; value < 300; value++) pods.put(pod(`p${value % 7}`, value));
    log.close();
    const sizes = readdirSync(folder).map((name) => statSync(join(folder, name)).size);
    assert.equal(sizes.length, 2);
    assert.ok(Math.max(...sizes) < 12_000, `sizes: ${sizes.join(', ')}`);
    const next = open(folder, 10_000);
    assert.equal(next.store.revision, store.revision);
    assert.deepEqual(next.pods.list(), pods.list());
    const { compacted } = next.pods.history;
    assert.ok(store.revision - compacted >= 50, `history from ${compacted} to ${store.revision}`);
    assert.deepEqual(
      next.pods.history.since(compacted).map(({ object }) => object),
      pods.history.since(compacted).map(({ object }) => object),
    );
    assert.ok(compacted > 1);
    assert.throws(() => next.pods.history.since(compacted - 1), /too old resource version/);
    next.log.close();
  });

  test('continues with the newest file alone', (context) => {
    const folder = temporaryFolder(context);
    const { pods, log } = open(folder, 10_000);
    for (let value = 0; value < 200; value++) pods.put(pod(`p${value % 7}`, value));
    log.close();
    const [oldest = ''] = readdirSync(folder).sort();
    rmSync(join(folder, oldest));
    const next = open(folder, 10_000);
    assert.deepEqual(next.pods.list(), pods.list());
    next.log.close();
  });

  test('ignores a file that was not completed', (context) => {
    const folder = temporaryFolder(context);
    const { pods, log } = open(folder, 10_000);
    pods.put(pod('a', 1));
    log.close();
    appendFileSync(join(folder, 'objects-000002.log.new'), 'half a snapshot');
    const next = open(folder, 10_000);
    assert.deepEqual(next.pods.list(), pods.list());
    assert.deepEqual(readdirSync(folder), ['lock', 'objects-000001.log']);
    next.log.close();
  });
});
