import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { CONFIG_MAPS, SECRETS } from '../../../src/api/builtin.ts';
import { controllerReference, isControlledBy } from '../../../src/api/metadata.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../src/manager/controller-kit.ts';
import { FlightRecorder } from '../../../src/replay/flight-recorder.ts';
import { replay } from '../../../src/replay/replay.ts';
import { RecordingFile } from '../../../src/replay/recording-file.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import { linesOfFile, recordings, recordRun } from '../../support/recorded-run.ts';
import type { RecordedScene } from '../../support/recorded-run.ts';

/** Part of every secret in this test. */
const CANARY = 'c4n4ry';
const encoded = (text: string) => Buffer.from(text).toString('base64');
const FORBIDDEN = [CANARY, encoded(CANARY).slice(0, 7), encoded(`${CANARY}-old`), 'eyJ', 'Bearer'];

/** Keeps one Secret for each ConfigMap. Reads, changes and deletes it, and asks for a token. */
const secretsOf = (value: string) => (kit: ControllerKit) => {
  const maps = kit.informers.for(CONFIG_MAPS);
  const secrets = kit.informers.for(SECRETS);
  const controller = new Controller(kit, {
    name: 'secrets',
    kind: 'ConfigMap',
    sync: async (key, { client }) => {
      const map = maps.lister.get(key);
      if (map?.metadata.namespace !== 'default' || !map.data?.['mine']) return done();
      if (secrets.lister.list().some((secret) => isControlledBy(secret, map))) return done();
      const at = { namespace: 'default', name: map.metadata.name };
      const annotations = {
        'kubectl.kubernetes.io/last-applied-configuration': `{"data":"${value}"}`,
      };
      const metadata = { ...at, annotations, ownerReferences: [controllerReference(map)] };
      const stringData = { password: value };
      await client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, stringData });
      await client.get(SECRETS, at);
      await client.list(SECRETS, { namespace: 'default' });
      const data = { password: encoded(`${value}-old`) };
      await client.patch(SECRETS, at, { type: 'merge', body: { data } });
      const op = { op: 'replace' as const, path: '/data/password', value: encoded(value) };
      await client.patch(SECRETS, at, { type: 'json', body: [op] });
      await client.raw({
        method: 'POST',
        path: '/api/v1/namespaces/default/serviceaccounts/default/token',
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      });
      const rejected = { ...at, name: `${at.name}-2` };
      const invalid = {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: rejected,
        data: { key: CANARY },
      };
      await client.create(SECRETS, invalid).catch(() => undefined);
      return done();
    },
  });
  return [controller.for(maps).owns(secrets, CONFIG_MAPS)];
};

/** Creates objects whose syncs write, one after another. */
const createMaps =
  (count: number) =>
  async ({ client, clock, written }: RecordedScene): Promise<void> => {
    for (let at = 0; at < count; at++) {
      const metadata = { namespace: 'default', name: `map-${at}` };
      const data = { mine: 'yes', text: 'confidential' };
      await clock.advance(1000);
      await client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
      await clock.advance(1000);
      if (count > 2) await written();
    }
  };

const prepare = async ({ client }: RecordedScene) => {
  const metadata = { namespace: 'default', name: 'default' };
  await client.raw({
    method: 'POST',
    path: '/api/v1/namespaces/default/serviceaccounts',
    body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
  });
};

describe('A flight recorder', () => {
  const at = recordings();

  it('records Secrets as metadata and a hash, and no credentials and tokens', async () => {
    const file = at('secrets.ndjson');
    const controllers = secretsOf(CANARY);
    await recordRun({ controllers, file }, createMaps(2), prepare);
    const text = readFileSync(file, 'utf8');
    for (const secret of FORBIDDEN) assert.ok(!text.includes(secret), secret);
    assert.match(text, /"kind":"Secret".*"hash":"/);
    assert.match(text, /serviceaccounts\/default\/token/);
    const same = await replay({ file, controllers });
    assert.deepEqual([same.differences, same.compared > 2], [[], true]);
    const other = await replay({ file, controllers: secretsOf(`${CANARY}-2`) });
    assert.equal(other.differences.length, 2);
    assert.ok(other.differences.every(({ writes }) => writes[0]?.fields[0]?.field === '.hash'));
  });

  it('records further resources as metadata and a hash', async () => {
    const file = at('redacted.ndjson');
    const redact = ['configmaps'];
    await recordRun({ controllers: secretsOf('x'), file, redact }, createMaps(1), prepare);
    const text = readFileSync(file, 'utf8');
    assert.match(text, /"kind":"ConfigMap"/);
    assert.doesNotMatch(text, /confidential/);
  });

  it('starts a new file when the size is reached, with the objects of all caches', async () => {
    const file = at('rotated.ndjson');
    const controllers = secretsOf('x');
    await recordRun({ controllers, file, maxBytes: 30_000 }, createMaps(8), prepare);
    for (const each of [file, `${file}.1`]) {
      const report = await replay({ file: each, controllers });
      assert.deepEqual(report.differences, [], each);
      assert.ok(report.compared > 0, each);
    }
    const [header = ''] = linesOfFile(file);
    assert.ok((JSON.parse(header) as { ms: number }).ms > 2000);
  });

  it('has no line that is older than its header', async () => {
    const file = at('ordered.ndjson');
    const recorder = new FlightRecorder({ file });
    const clock = new FakeClock();
    recorder.clock(clock);
    await clock.advance(5);
    const stop = new AbortController();
    const running = recorder.run(stop.signal);
    await recorder.flush();
    stop.abort();
    await running;
    const times = linesOfFile(file).map((line) => (JSON.parse(line) as { ms: number }).ms);
    assert.deepEqual(times, [0, 0]);
  });

  it('keeps the recording of the former process', async () => {
    const file = at('kept.ndjson');
    writeFileSync(file, 'former');
    await recordRun({ controllers: secretsOf('x'), file }, createMaps(1), prepare);
    assert.equal(readFileSync(`${file}.1`, 'utf8'), 'former');
  });

  it('rejects a size that is not positive', () => {
    assert.throws(() => new FlightRecorder({ file: at('none'), maxBytes: 0 }), RangeError);
    assert.equal(existsSync(at('none')), false);
  });
});

describe('A recording file', () => {
  const at = recordings();

  it('counts the lines that a slow disk loses, and starts again with all objects', async () => {
    const path = at('gap');
    let starts = 0;
    const listeners = process.listenerCount('exit');
    const file = new RecordingFile({
      path,
      maxBytes: Infinity,
      now: () => 0,
      header: () => 'header',
      gap: (lines) => `lost ${lines}`,
      onStart: () => file.write(`objects ${++starts}`),
      onWritten: () => undefined,
    });
    await file.open();
    for (let line = 0; line < 10; line++) file.write(`${line} ${'x'.repeat(1024 * 1024)}`);
    await file.close();
    assert.equal(process.listenerCount('exit'), listeners);
    assert.equal(statSync(path).mode & 0o777, 0o600);
    const lines = linesOfFile(path).map((line) => line.slice(0, 10).trimEnd());
    assert.deepEqual(lines.slice(0, 2), ['header', '0 xxxxxxxx']);
    assert.deepEqual(lines.slice(-3), ['6 xxxxxxxx', 'lost 3', 'objects 1']);
  });

  it('reports that it cannot be written', async () => {
    const path = at('no/such/folder');
    const texts = { now: () => 0, header: () => '', gap: () => '' };
    const calls = { onStart: () => undefined, onWritten: () => undefined };
    const file = new RecordingFile({ ...texts, ...calls, path, maxBytes: 1 });
    await assert.rejects(file.open(), /ENOENT/);
  });
});
