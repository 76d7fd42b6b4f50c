import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, RequestListener } from 'node:http';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { ApiError, isApiError } from '../../../src/api/api-error.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../../src/api/builtin.ts';
import type { HttpClientOptions } from '../../../src/client/http-client.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { http1Transport } from '../../../src/client/transport/transport.ts';
import type { RestClientMetrics, RestExchange } from '../../../src/metrics/rest-client-metrics.ts';
import { noRestClientMetrics } from '../../../src/metrics/no-metrics.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import type { ConfigMap } from '../../../src/api/builtin.ts';
import type { KubernetesObject } from '../../../src/api/object.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { bodyOf, configMap, sendJson, sendStatus, serve } from './server.ts';

async function connect(
  t: TestContext,
  listener: RequestListener,
  options: Partial<HttpClientOptions> = {},
) {
  const { url, server } = await serve(t, listener);
  const transport = http1Transport({ server: url });
  t.after(() => transport.close());
  return {
    url,
    server,
    client: new HttpClient({ handler: transport.handle, server: url, ...options }),
  };
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

const AT = { namespace: 'default', name: 'settings' };

test('returns text unchanged, and a Status as an error', async (t) => {
  const { client } = await connect(t, ({ url, headers }, response) => {
    if (url === '/log') {
      assert.equal(headers.accept, '*/*');
      response.setHeader('content-type', 'text/plain').end('{"a": ü}\n');
    } else {
      sendJson(response, { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 }, 404);
    }
  });
  assert.equal(await client.text({ path: '/log' }), '{"a": ü}\n');
  const error = await failure(client.text({ path: '/other' }));
  assert.equal(error.kind, 'notFound');
});

test('lists and watches without the drop parameter after a server has rejected it', async (t) => {
  const accepted: (string | undefined)[] = [];
  const { client } = await connect(t, ({ headers }, response) => {
    accepted.push(headers.accept);
    if (headers.accept?.includes('drop=')) {
      const status = { kind: 'Status', status: 'Failure', reason: 'NotAcceptable', code: 406 };
      sendJson(response, status, 406);
    } else {
      sendJson(response, { metadata: { resourceVersion: '9' }, items: [] });
    }
  });
  await client.list(CONFIG_MAPS);
  await client.watch(CONFIG_MAPS);
  assert.deepEqual(accepted, [
    'application/json;drop=metadata.managedFields',
    'application/json',
    'application/json',
  ]);
});

test('requests managedFields if the option keeps them', async (t) => {
  const accepted: (string | undefined)[] = [];
  const { client } = await connect(
    t,
    ({ headers }, response) => {
      accepted.push(headers.accept);
      sendJson(response, { metadata: { resourceVersion: '9' }, items: [] });
    },
    { keepManagedFields: true },
  );
  await client.list(CONFIG_MAPS);
  assert.deepEqual(accepted, ['application/json']);
});

test('sends the request that Kubernetes expects for each verb', async (t) => {
  const seen: unknown[] = [];
  const { client } = await connect(
    t,
    (request, response) => {
      void bodyOf(request).then((body) => {
        const { accept, 'content-type': type, 'user-agent': agent } = request.headers;
        seen.push([
          `${request.method} ${request.url}`,
          type ?? accept,
          body && (JSON.parse(body) as unknown),
        ]);
        assert.equal(agent, 'test/1');
        sendJson(
          response,
          request.url?.startsWith('/api/v1/configmaps') || request.url?.includes('limit=')
            ? { kind: 'ConfigMapList', metadata: { resourceVersion: '9' }, items: [] }
            : configMap('settings'),
        );
      });
    },
    { userAgent: 'test/1' },
  );
  const json = 'application/json';
  const object = configMap('settings');
  const path = '/api/v1/namespaces/default/configmaps';
  const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' } };

  await client.get(CONFIG_MAPS, AT, { resourceVersion: '0' });
  await client.list(CONFIG_MAPS, {
    labelSelector: 'app=web,tier!=db',
    fieldSelector: 'metadata.name=web',
    resourceVersion: '5',
    resourceVersionMatch: 'NotOlderThan',
    limit: 500,
    continueToken: 'next page',
  });
  const labelSelector = {
    matchLabels: { app: 'web' },
    matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['db'] }],
  } as const;
  await client.list(CONFIG_MAPS, { labelSelector });
  await client.list(CONFIG_MAPS, { namespace: 'default', limit: 1, metadataOnly: true });
  await client.create(CONFIG_MAPS, object, {
    fieldManager: 'me',
    dryRun: true,
    fieldValidation: 'Strict',
  });
  await client.update(CONFIG_MAPS, object, { subresource: 'status' });
  await client.patch(CONFIG_MAPS, AT, { type: 'merge', body: { data: {} } });
  await client.patch(CONFIG_MAPS, AT, {
    type: 'json',
    body: [{ op: 'remove', path: '/data' }],
  });
  await client.patch(CONFIG_MAPS, AT, { type: 'strategic', body: {} }, { subresource: 'scale' });
  await client.patch(
    CONFIG_MAPS,
    AT,
    { type: 'apply', body: applied, force: true },
    { fieldManager: 'me' },
  );
  await client.delete(CONFIG_MAPS, AT, {
    uid: 'u',
    propagationPolicy: 'Foreground',
    gracePeriodSeconds: 0,
    dryRun: true,
  });
  await client.delete(CONFIG_MAPS, AT, { resourceVersion: '5' });
  await client.raw({ path: '/version' });

  assert.deepEqual(seen, [
    [`GET ${path}/settings?resourceVersion=0`, json, ''],
    [
      'GET /api/v1/configmaps?labelSelector=app%3Dweb%2Ctier%21%3Ddb&fieldSelector=metadata.name%3Dweb&resourceVersion=5&resourceVersionMatch=NotOlderThan&limit=500&continue=next+page',
      `${json};drop=metadata.managedFields`,
      '',
    ],
    [
      'GET /api/v1/configmaps?labelSelector=app%3Dweb%2Ctier+notin+%28db%29',
      `${json};drop=metadata.managedFields`,
      '',
    ],
    [
      `GET ${path}?limit=1`,
      'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;drop=metadata.managedFields,application/json;drop=metadata.managedFields',
      '',
    ],
    [`POST ${path}?fieldManager=me&dryRun=All&fieldValidation=Strict`, json, object],
    [`PUT ${path}/settings/status`, json, object],
    [`PATCH ${path}/settings`, 'application/merge-patch+json', { data: {} }],
    [`PATCH ${path}/settings`, 'application/json-patch+json', [{ op: 'remove', path: '/data' }]],
    [`PATCH ${path}/settings/scale`, 'application/strategic-merge-patch+json', {}],
    [`PATCH ${path}/settings?fieldManager=me&force=true`, 'application/apply-patch+yaml', applied],
    [
      `DELETE ${path}/settings`,
      json,
      {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        preconditions: { uid: 'u' },
        dryRun: ['All'],
        propagationPolicy: 'Foreground',
        gracePeriodSeconds: 0,
      },
    ],
    [
      `DELETE ${path}/settings`,
      json,
      { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { resourceVersion: '5' } },
    ],
    ['GET /version', json, ''],
  ]);
});

test('rejects a name that would change the path before it sends the request', async () => {
  const handler: HttpHandler = () => assert.fail('it was sent');
  const client = new HttpClient({ handler, server: 'test' });
  for (const name of ['', '.', '..', 'a/b', 'a%2fb']) {
    await assert.rejects(client.delete(CONFIG_MAPS, { namespace: 'default', name }), TypeError);
    await assert.rejects(client.list(PODS, { namespace: name || '..' }), TypeError);
    await assert.rejects(client.watch(PODS, { namespace: name || '..' }), TypeError);
    await assert.rejects(client.get(NODES, { name }), TypeError);
  }
  await assert.rejects(
    client.get(PODS, { name: 'web' }),
    /pods: expected the namespace of one object/,
  );
  await assert.rejects(
    client.patch<KubernetesObject>(PODS, AT, { type: 'apply', body: {} }),
    /fieldManager/,
  );
});

test('sets the kind of list items and removes managed fields', async (t) => {
  const { client } = await connect(t, (_request, response) => {
    const { apiVersion: _version, kind: _kind, ...bare } = configMap('a');
    sendJson(response, {
      kind: 'ConfigMapList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '7', continue: 'token', remainingItemCount: 3 },
      items: [{ ...bare, metadata: { ...bare.metadata, managedFields: [{ manager: 'x' }] } }],
    });
  });
  const page = await client.list(CONFIG_MAPS);
  assert.deepEqual(page, {
    items: [configMap('a')],
    resourceVersion: '7',
    continueToken: 'token',
    remainingItemCount: 3,
  });
});

test('keeps managed fields on request, and reads an empty Go slice as an empty list', async (t) => {
  const { client } = await connect(
    t,
    (request, response) => {
      const object = configMap('a');
      sendJson(
        response,
        request.url?.endsWith('/settings')
          ? { ...object, metadata: { ...object.metadata, managedFields: [{ manager: 'x' }] } }
          : { kind: 'ConfigMapList', metadata: {}, items: null },
      );
    },
    { keepManagedFields: true },
  );
  const object: ConfigMap = await client.get(CONFIG_MAPS, AT);
  assert.deepEqual(object.metadata.managedFields, [{ manager: 'x' }]);
  assert.deepEqual(await client.list(CONFIG_MAPS), { items: [], resourceVersion: '' });
});

test('sets the kind of the resource on metadata-only objects', async (t) => {
  const { client } = await connect(t, (_request, response) => {
    const { metadata } = configMap('a');
    const partial = { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata };
    sendJson(response, { kind: 'PartialObjectMetadataList', metadata: {}, items: [partial] });
  });
  const { items } = await client.list(CONFIG_MAPS, { metadataOnly: true });
  assert.equal(items[0]!.kind, 'ConfigMap');
  assert.equal(items[0]!.apiVersion, 'v1');
});

test('reports an unsuccessful response with the message of the server', async (t) => {
  const { client } = await connect(t, (_request, response) =>
    sendJson(
      response,
      {
        kind: 'Status',
        code: 409,
        reason: 'AlreadyExists',
        message: 'configmaps "settings" already exists',
        details: { name: 'settings', causes: [{ reason: 'FieldManagerConflict' }] },
      },
      409,
    ),
  );
  const error = await failure(client.get(CONFIG_MAPS, AT));
  assert.equal(error.kind, 'alreadyExists');
  assert.equal(error.code, 409);
  assert.equal(error.message, 'configmaps "settings" already exists');
  assert.ok(error.hasCause('FieldManagerConflict'));
});

test('rejects an HTML page with any status, because API servers do not send HTML', async (t) => {
  const page = `<!DOCTYPE html><html><head><title>Login</title></head>\n<body>${'<p>Welcome</p>'.repeat(5000)}`;
  const kinds: unknown[] = [];
  for (const status of [200, 302, 404, 409, 401, 403, 429, 502, 503]) {
    const { client } = await connect(t, (_request, response) => {
      response.writeHead(status, {
        'content-type': 'text/html; charset=utf-8',
        ...(status === 302 && { location: 'https://login.example/?token=canary' }),
      });
      response.end(page);
    });
    const error = await failure(client.get(CONFIG_MAPS, AT));
    kinds.push([status, error.kind]);
    assert.equal(error.code, status);
    assert.match(error.message, /^GET http:\/\/127.0.0.1:\d+\/api\/v1\/namespaces\/default\//);
    assert.match(error.message, status === 302 ? /https:\/\/login\.example\./ : /Login Welcome/);
    assert.ok(error.message.length < 400 && !/[\n<]|canary/.test(error.message), error.message);
  }
  assert.deepEqual(kinds, [
    [200, 'malformed'],
    [302, 'malformed'],
    [404, 'malformed'],
    [409, 'malformed'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [429, 'tooManyRequests'],
    [502, 'internal'],
    [503, 'unavailable'],
  ]);
});

test('accepts the plain 404 of an API server for an unknown API', async (t) => {
  const { client } = await connect(t, (_request, response) => {
    response.writeHead(404, { 'content-type': 'text/plain' });
    response.end('404 page not found\n');
  });
  const error = await failure(client.list(CONFIG_MAPS));
  assert.equal(error.kind, 'notFound');
  assert.match(error.message, /404 page not found/);
});

test('rejects truncated and deeply nested JSON without quoting it', async (t) => {
  const deep = `{"a":${'['.repeat(100)}${']'.repeat(100)}}`;
  const bodies: [string, RegExp][] = [
    ['{"kind":"ConfigMap","data":{"key":"canary', /incomplete or malformed JSON \(\d+ bytes\)/],
    [deep, /nested deeper than 100 levels/],
    ['"canary"', /Expected an object of kind ConfigMap/],
    ['{"kind":"ConfigMap","metadata":null}', /Expected an object of kind ConfigMap/],
  ];
  for (const [body, message] of bodies) {
    const { client } = await connect(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(body);
    });
    const error = await failure(client.get(CONFIG_MAPS, AT));
    assert.equal(error.kind, 'malformed');
    assert.match(error.message, message);
    assert.ok(!JSON.stringify([error.message, String(error.cause)]).includes('canary'));
  }
});

test('accepts a hundred levels, and ignores brackets in strings', async (t) => {
  const annotations = { note: '{[\\"'.repeat(300) };
  const { client } = await connect(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const metadata = JSON.stringify({ ...configMap('a').metadata, annotations });
    response.end(`{"metadata":${metadata},"data":${'['.repeat(99)}${']'.repeat(99)}}`);
  });
  const object = await client.get(CONFIG_MAPS, AT);
  assert.deepEqual(object.metadata.annotations, annotations);
});

test('reads __proto__ and similar keys as data', async (t) => {
  const { client } = await connect(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(
      `{"metadata":{"name":"a","labels":{"__proto__":"x","constructor":"y"},"__proto__":{"polluted":true}}}`,
    );
  });
  const { metadata } = await client.get(CONFIG_MAPS, AT);
  assert.deepEqual(Object.keys(metadata.labels ?? {}), ['__proto__', 'constructor']);
  assert.equal(Object.getPrototypeOf(metadata.labels), Object.prototype);
  assert.equal('polluted' in {}, false);
});

// upstream: 91a
test('retries 429 and 5xx after the Retry-After delay, for every verb', async (t) => {
  const clock = new FakeClock();
  const retried: unknown[] = [];
  const metrics: RestClientMetrics = {
    ...noRestClientMetrics,
    retried: (retry) => retried.push(retry.code),
  };
  const { log, lines } = recordingLogger([], 4);
  let calls = 0;
  const { client } = await connect(
    t,
    (_request, response) => {
      if (++calls === 1) sendStatus(response, 429, 'TooManyRequests', { 'retry-after': '3' });
      else if (calls === 2) sendStatus(response, 503, 'Busy', { 'retry-after': '2' });
      else sendJson(response, configMap('settings'));
    },
    { clock, metrics, log },
  );
  const created = client.create(CONFIG_MAPS, configMap('settings'));
  await sleeping(clock, 3000);
  await clock.advance(2999);
  assert.equal(calls, 1);
  await clock.advance(1);
  await sleeping(clock, 2000);
  await clock.advance(2000);
  assert.equal((await created).metadata.name, 'settings');
  assert.equal(calls, 3);
  assert.deepEqual(retried, ['429', '503']);
  assert.deepEqual(
    lines.map(({ fields }) => [fields['attempt'], fields['delay'], fields['code']]),
    [
      [1, '3s', '429'],
      [2, '2s', '503'],
    ],
  );
});

// upstream: 91c
test('stops retrying after ten retries, on abort, without Retry-After, or if the delay is long', async (t) => {
  let calls = 0;
  let headers: Record<string, string> = { 'retry-after': '0' };
  const { client } = await connect(t, (_request, response) => {
    calls++;
    sendStatus(response, 503, 'ServiceUnavailable', headers);
  });
  assert.equal((await failure(client.get(CONFIG_MAPS, AT))).kind, 'unavailable');
  assert.equal(calls, 11);

  for (const value of ['Wed, 21 Oct 2026 07:28:00 GMT', '-1', '600']) {
    calls = 0;
    headers = { 'retry-after': value };
    const error = await failure(client.get(CONFIG_MAPS, AT));
    assert.equal(error.retryAfterMs, value === '600' ? 600_000 : undefined);
    assert.equal(calls, 1);
  }

  headers = { 'retry-after': '50' };
  const abort = new AbortController();
  const pending = client.get(CONFIG_MAPS, AT, { signal: abort.signal });
  const reason = new Error('enough');
  setImmediate(() => abort.abort(reason));
  await assert.rejects(pending, reason);
});

// upstream: 91b
test('retries a GET whose connection broke after one second, but no write', async (t) => {
  const clock = new FakeClock();
  let calls = 0;
  const { client } = await connect(
    t,
    (_request, response) => {
      if (++calls === 1) response.destroy();
      else sendJson(response, configMap('settings'));
    },
    { clock },
  );
  const got = client.get(CONFIG_MAPS, AT);
  await sleeping(clock, 1000);
  await clock.advance(1000);
  assert.equal((await got).metadata.name, 'settings');

  calls = 0;
  const error = await failure(client.create(CONFIG_MAPS, configMap('settings')));
  assert.equal(error.kind, 'unreachable');
  assert.equal(calls, 1);
});

test('applies the request timeout to calls, but not to watches', async (t) => {
  const clock = new FakeClock();
  const { client, server } = await connect(
    t,
    (request, response) => {
      if (request.url?.includes('watch=')) response.flushHeaders();
    },
    { clock, requestTimeoutMs: 5000 },
  );
  const request = once(server, 'request');
  const got = failure(client.create(CONFIG_MAPS, configMap('settings')));
  await request;
  await clock.advance(5000);
  const error = await got;
  assert.equal(error.kind, 'unreachable');
  assert.match(error.message, /No complete response to POST .*: not done within 5 s\./);
  assert.equal(clock.pending, 0);

  const abort = new AbortController();
  await client.watch(CONFIG_MAPS, { signal: abort.signal });
  assert.equal(clock.pending, 0);
  abort.abort();
});

test('times out if a watch is not accepted, or its error response does not end', async (t) => {
  for (const sendsHeaders of [false, true]) {
    const clock = new FakeClock();
    const { client, server } = await connect(
      t,
      (_request, response) => {
        if (sendsHeaders) response.writeHead(500, { 'content-length': '100' }).write('started');
      },
      { clock },
    );
    const request = once(server, 'request');
    const refused = failure(client.watch(CONFIG_MAPS));
    await request;
    await clock.advance(65_000);
    const error = await refused;
    assert.equal(error.kind, 'unreachable');
    assert.match(error.message, /not done within 65 s/);
  }
});

test('does not wait for slow credentials after an abort', async () => {
  const reason = new Error('enough');
  const client = new HttpClient({
    handler: () => assert.fail('it was sent'),
    server: 'test',
    credentials: { headers: () => new Promise(() => undefined), invalidate: () => true },
  });
  const abort = new AbortController();
  const calls = [
    client.get(CONFIG_MAPS, AT, { signal: abort.signal }),
    client.watch(CONFIG_MAPS, { signal: abort.signal }),
  ];
  setImmediate(() => abort.abort(reason));
  for (const call of calls) await assert.rejects(call, reason);
});

test('retries a 401 once with new credentials, then rejects', async (t) => {
  let valid = 'new';
  const { client } = await connect(
    t,
    (request, response) => {
      if (request.headers.authorization === valid) sendJson(response, configMap('settings'));
      else sendStatus(response, 401, 'Unauthorized');
    },
    {
      credentials: {
        headers: async () => ({ authorization: current }),
        invalidate(refused) {
          invalidated.push(refused['authorization']);
          current = 'new';
          return true;
        },
      },
    },
  );
  let current = 'old';
  const invalidated: unknown[] = [];
  assert.equal((await client.get(CONFIG_MAPS, AT)).metadata.name, 'settings');
  assert.deepEqual(invalidated, ['old']);
  valid = 'another';
  const error = await failure(client.get(CONFIG_MAPS, AT));
  assert.equal(error.kind, 'unauthorized');
  assert.deepEqual(invalidated, ['old', 'new']);
});

test('delays requests after the burst of the rate limit, but no watches', async (t) => {
  const clock = new FakeClock();
  const seen: string[] = [];
  const waits: number[] = [];
  const { client } = await connect(
    t,
    (request, response) => {
      seen.push(String(request.url));
      if (request.url?.includes('watch=')) response.end();
      else sendJson(response, configMap('settings'));
    },
    {
      clock,
      qps: 2,
      burst: 2,
      metrics: { ...noRestClientMetrics, throttled: ({ seconds }) => waits.push(seconds) },
    },
  );
  const calls = Array.from({ length: 4 }, () => client.get(CONFIG_MAPS, AT));
  await Promise.all(calls.slice(0, 2));
  await client.watch(CONFIG_MAPS);
  assert.equal(seen.length, 3);
  await clock.advance(500);
  await calls[2];
  assert.equal(seen.length, 4);
  await clock.advance(500);
  await calls[3];
  assert.deepEqual(waits, [0, 0, 0.5, 1]);
});

test('counts and times every request by verb, host and code', async (t) => {
  const exchanges: RestExchange[] = [];
  const { client, url } = await connect(
    t,
    (request, response) => {
      if (request.method === 'GET') sendStatus(response, 404, 'NotFound');
      else if (request.method === 'PUT') response.destroy();
      else sendJson(response, configMap('settings'));
    },
    { metrics: { ...noRestClientMetrics, exchanged: (exchange) => exchanges.push(exchange) } },
  );
  await client.create(CONFIG_MAPS, configMap('settings'));
  await failure(client.get(CONFIG_MAPS, AT));
  await failure(client.update(CONFIG_MAPS, configMap('settings')));
  const size = JSON.stringify(configMap('settings')).length;
  const { host } = new URL(url);
  assert.deepEqual(
    exchanges.map(({ seconds: _seconds, ...rest }) => rest),
    [
      { verb: 'POST', host, code: '200', requestBytes: size, responseBytes: size },
      { verb: 'GET', host, code: '404', requestBytes: 0, responseBytes: 136 },
      { verb: 'PUT', host, code: '<error>', requestBytes: size },
    ],
  );
});

test('measures the time of a request in seconds', async () => {
  const clock = new FakeClock();
  const seconds: number[] = [];
  const handler: HttpHandler = async () => {
    await clock.sleep(2500);
    throw new Error('planted');
  };
  const metrics = {
    ...noRestClientMetrics,
    exchanged: (exchange: RestExchange) => void seconds.push(exchange.seconds),
  };
  const client = new HttpClient({ handler, server: 'https://test', clock, metrics });
  const failed = failure(client.create(CONFIG_MAPS, configMap('settings')));
  await clock.advance(2500);
  await failed;
  assert.deepEqual(seconds, [2.5]);
});

test('logs each distinct warning of the server once', async (t) => {
  const { log, lines } = recordingLogger([], 0);
  let warning = 'v1 Foo is deprecated';
  const { client } = await connect(
    t,
    (_request, response) =>
      sendJson(response, configMap('settings'), 200, { warning: `299 - "${warning}"` }),
    { log },
  );
  await client.get(CONFIG_MAPS, AT);
  await client.get(CONFIG_MAPS, AT);
  warning = 'v2 Foo is deprecated';
  await client.get(CONFIG_MAPS, AT);
  assert.deepEqual(
    lines.map(({ fields }) => fields['warning']),
    ['v1 Foo is deprecated', 'v2 Foo is deprecated'],
  );
});

test('quotes an error response unchanged if the request had no credentials', async (t) => {
  const { client } = await connect(t, (_request, response) =>
    sendStatus(response, 400, 'no authorization header'),
  );
  assert.match((await failure(client.get(CONFIG_MAPS, AT))).message, /no authorization header/);
});

test('passes warnings of the server to onWarning', async (t) => {
  const warnings: string[] = [];
  const { client } = await connect(
    t,
    (_request, response) =>
      sendJson(response, configMap('settings'), 200, {
        warning: '299 - "v1 Foo is deprecated", 299 - "unknown field \\"x\\"", 199 - "other"',
      }),
    { onWarning: (warning) => warnings.push(warning) },
  );
  await client.get(CONFIG_MAPS, AT);
  assert.deepEqual(warnings, ['v1 Foo is deprecated', 'unknown field "x"']);
});

test('requires a Kubernetes object as the response to a deletion', async (t) => {
  let answer: unknown = { kind: 'Status', status: 'Success' };
  const { client } = await connect(t, (_request, response) => sendJson(response, answer));
  await client.delete(CONFIG_MAPS, AT);
  answer = ['welcome'];
  assert.equal((await failure(client.delete(CONFIG_MAPS, AT))).kind, 'malformed');
});

test('converts every error of a handler to an ApiError', async () => {
  const handler: HttpHandler = async () => {
    throw Object.assign(new Error('planted'), { code: 'EWHATEVER' });
  };
  const client = new HttpClient({ handler, server: 'https://in.process' });
  const error = await failure(client.create(CONFIG_MAPS, configMap('settings')));
  assert.ok(isApiError(error, 'unreachable'));
  assert.match(error.message, /^Cannot reach the API server https:\/\/in\.process: planted\./);
});

test('streams watch events, and rejects its promise if the server rejects the watch', async (t) => {
  const requests: IncomingMessage[] = [];
  const { client } = await connect(t, (request, response) => {
    requests.push(request);
    if (request.url?.includes('resourceVersion=gone')) return sendStatus(response, 410, 'Expired');
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(`${JSON.stringify({ type: 'ADDED', object: configMap('a') })}\n`);
  });
  const stream = await client.watch(CONFIG_MAPS, {
    namespace: 'default',
    resourceVersion: '5',
    allowWatchBookmarks: true,
    timeoutSeconds: 300,
  });
  const events = [];
  for await (const event of stream) events.push(event);
  assert.deepEqual(events, [{ type: 'added', object: configMap('a') }]);
  assert.equal(
    requests[0]!.url,
    '/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=300',
  );
  const refused = await failure(client.watch(CONFIG_MAPS, { resourceVersion: 'gone' }));
  assert.equal(refused.kind, 'expired');
});

/** Waits, in real turns of the event loop, until the next timer of the clock is due in `ms`. */
async function sleeping(clock: FakeClock, ms: number): Promise<void> {
  while (clock.untilNext !== ms) await settle(1);
}
