import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objectKey } from '../../../src/api/object-key.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { Informer } from '../../../src/cache/informer.ts';
import { listerWatcher } from '../../../src/cache/lister-watcher.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpRequest } from '../../../src/util/http.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

interface Foo extends KubernetesObject {
  readonly spec: { readonly replicas: number };
}

const FOOS = { group: 'x.io', version: 'v1', plural: 'foos', kind: 'Foo', namespaced: true };

function foo(name: string, resourceVersion: string, replicas: string): string {
  return `{"apiVersion":"x.io/v1","kind":"Foo","metadata":{"namespace":"ns","name":"${name}","uid":"${name}","resourceVersion":"${resourceVersion}"},"spec":{"replicas":${replicas}}}`;
}

/** Sends one object with a malformed spec in the initial state, and one in a change. */
async function* watchBody({ signal }: HttpRequest): AsyncGenerator<Uint8Array> {
  const line = (type: string, object: string) =>
    Buffer.from(`{"type":"${type}","object":${object}}\n`);
  const end =
    '{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}';
  yield line('ADDED', foo('good', '1', '1'));
  yield line('ADDED', foo('bad', '2', 'x'));
  yield line('BOOKMARK', end);
  yield line('MODIFIED', foo('good', '10', '01'));
  yield line('MODIFIED', foo('good', '11', '3'));
  await new Promise((resolve) => signal?.addEventListener('abort', resolve));
}

test('caches objects with malformed content, and reports each failed read', async () => {
  const { log, lines } = recordingLogger();
  const clock = new FakeClock();
  const client = new HttpClient({
    server: 'http://test',
    clock,
    handler: async (request) => ({ status: 200, headers: {}, body: watchBody(request) }),
  });
  const informer = new Informer<Foo>(FOOS, listerWatcher<Foo>(client, FOOS), { clock, log });
  const seen: string[] = [];
  informer.addHandler({
    onAdd: ({ metadata, spec }) => void seen.push(`${metadata.name}=${spec.replicas}`),
    onUpdate: (_, { metadata, spec }) => void seen.push(`${metadata.name}=${spec.replicas}`),
  });
  const abort = new AbortController();
  const running = informer.run(abort.signal);
  await informer.synced;
  await settle();
  assert.deepEqual(seen, ['good=1', 'good=3']);
  assert.equal(informer.lastSyncResourceVersion, '11');
  assert.throws(() => informer.lister.get(objectKey('ns', 'bad'))?.spec, {
    kind: 'malformed',
    message: /Foo ns\/bad/,
  });
  const failures = lines.filter(({ message }) => message === 'Event handler failed');
  assert.deepEqual(
    failures.map(({ fields }) => fields?.['object']),
    ['ns/bad', 'ns/good'],
  );
  abort.abort();
  await running;
});
