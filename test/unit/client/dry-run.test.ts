import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isApiError } from '../../../src/api/api-error.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { dryRunClient } from '../../../src/client/dry-run.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import type { HttpRequest } from '../../../src/util/http.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import type { LogLine } from '../../support/recording-logger.ts';

const AT = { namespace: 'default', name: 'settings' };
const draft = (data: Record<string, string>) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: AT,
  data,
});

/** A server with one ConfigMap, a client for it, and the client in dry-run mode. */
async function given() {
  const server = new ApiServer();
  const requests: HttpRequest[] = [];
  const client = new HttpClient({
    handler: (request) => {
      requests.push(request);
      return server.handler(request);
    },
    server: 'in-process',
  });
  const stored = await client.create(CONFIG_MAPS, draft({ a: '1' }));
  const lines: LogLine[] = [];
  const dry = dryRunClient(client, recordingLogger(lines).log);
  requests.length = 0;
  return { client, dry, stored, lines, requests };
}

describe('a dry-run client', () => {
  test('returns responses like those of writes, and changes nothing', async () => {
    const { client, dry, stored } = await given();
    const created = await dry.create(CONFIG_MAPS, {
      ...draft({}),
      metadata: { ...AT, name: 'other' },
    });
    assert.ok(created.metadata.uid);
    const updated = await dry.update(CONFIG_MAPS, { ...stored, data: { a: '2' } });
    assert.deepEqual(updated, { ...stored, data: { a: '2' } });
    const body = { data: { a: '3' } };
    const patched = await dry.patch(CONFIG_MAPS, AT, { type: 'merge', body });
    assert.deepEqual(patched, { ...stored, data: { a: '3' } });
    await dry.delete(CONFIG_MAPS, AT, { uid: stored.metadata.uid });
    const { items } = await client.list(CONFIG_MAPS, { namespace: 'default' });
    assert.deepEqual(
      items.filter(({ metadata }) => !metadata.name.startsWith('kube-')),
      [stored],
    );
  });

  test('logs every write, but no read', async () => {
    const { dry, stored, lines } = await given();
    await dry.get(CONFIG_MAPS, AT);
    await dry.list(CONFIG_MAPS, { namespace: 'default' });
    await dry.patch(CONFIG_MAPS, AT, { type: 'merge', body: {} });
    await dry.delete(CONFIG_MAPS, AT, { uid: stored.metadata.uid });
    assert.deepEqual(
      lines.map(({ message, fields }) => [
        message,
        fields['would'],
        fields['resource'],
        fields['object'],
      ]),
      [
        ['Dry run', 'patch', 'configmaps', 'default/settings'],
        ['Dry run', 'delete', 'configmaps', 'default/settings'],
      ],
    );
  });

  test('returns errors of the server unchanged', async () => {
    const { dry, lines } = await given();
    await assert.rejects(dry.create(CONFIG_MAPS, draft({})), (error) =>
      isApiError(error, 'alreadyExists'),
    );
    assert.deepEqual(lines, []);
  });

  test('requests a dry run for every kind of write, whatever its options are', async () => {
    const { dry, requests } = await given();
    const options = { dryRun: false };
    await dry.create(CONFIG_MAPS, { ...draft({}), metadata: { ...AT, name: 'other' } }, options);
    await dry.update(CONFIG_MAPS, draft({}) as never, options);
    await dry.patch(CONFIG_MAPS, AT, { type: 'merge', body: {} }, options);
    await dry.delete(CONFIG_MAPS, AT, options);
    await dry.raw({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { metadata: { name: 'x' } },
    });
    const path = '/api/v1/namespaces?fieldValidation=Strict';
    await dry.raw({ method: 'POST', path, body: { metadata: { name: 'y' } } });
    assert.equal(requests.at(-1)?.path, `${path}&dryRun=All`);
    for (const { method, path, body } of requests) {
      const said = path.includes('dryRun=All') || String(body).includes('"dryRun":["All"]');
      assert.ok(said, `${method} ${path}`);
    }
    assert.equal(requests.length, 6);
  });
});
