import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect } from 'node:tls';
import { after, describe, test } from 'node:test';
import { HttpClient } from '../../../src/client/http-client.ts';
import { ApiServer, BUILTIN_KINDS, createServerAuthority } from '../../../src/testing.ts';
import type { ApiServerOptions, Listening, ResourceDefinition } from '../../../src/testing.ts';
import { CONFIG_MAPS, configMap } from './api-client.ts';
import type { Json } from './api-client.ts';

const servers: ApiServer[] = [];

function newServer(options?: ApiServerOptions): ApiServer {
  const server = new ApiServer(options);
  servers.push(server);
  return server;
}

after(() => Promise.all(servers.map((server) => server.close())));

interface SendOptions {
  readonly method?: string;
  readonly body?: string;
  readonly token?: string | undefined;
}

async function open(
  { url, caPem, token }: Listening,
  path: string,
  options: SendOptions = {},
): Promise<IncomingMessage> {
  const bearer = 'token' in options ? options.token : token;
  const outgoing = request(`${url}${path}`, {
    ca: caPem,
    agent: false,
    method: options.method ?? 'GET',
    headers: {
      'content-type': 'application/json',
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
    },
  });
  outgoing.end(options.body);
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  return incoming;
}

async function send(
  listening: Listening,
  path: string,
  options?: SendOptions,
): Promise<{ status: number | undefined; body: Json; text: string }> {
  const incoming = await open(listening, path, options);
  const text = await textOf(incoming);
  return { status: incoming.statusCode, text, body: text.startsWith('{') && JSON.parse(text) };
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  return Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>)).toString();
}

describe('the HTTPS listener', () => {
  test('accepts the token, and presents a certificate of its own authority', async () => {
    const listening = await newServer().listen();
    const created = await send(listening, CONFIG_MAPS, {
      method: 'POST',
      body: JSON.stringify(configMap('a')),
    });
    assert.equal(created.status, 201);
    for (const token of ['wrong', `${listening.token}x`]) {
      const { status, body } = await send(listening, `${CONFIG_MAPS}/a`, { token });
      assert.equal(status, 401);
      assert.deepEqual(body, {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'Unauthorized',
        reason: 'Unauthorized',
        code: 401,
      });
    }
    assert.equal((await send(listening, '/readyz', { token: undefined })).text, 'ok');
    const untrusting = connect({ port: listening.port, host: '127.0.0.1' });
    await assert.rejects(once(untrusting, 'secureConnect'), /self.signed|unable to/);
  });

  test('a kubeconfig names the server, its authority and the token', async () => {
    const listening = await newServer().listen();
    const config: Json = listening.kubeconfig();
    assert.equal(config.clusters[0].cluster.server, listening.url);
    const ca = Buffer.from(config.clusters[0].cluster['certificate-authority-data'], 'base64');
    assert.equal(ca.toString(), listening.caPem);
    assert.equal(config.users[0].user.token, listening.token);
    assert.equal(config['current-context'], config.contexts[0].name);
  });

  test('streams a watch, and notices when the client disconnects', async () => {
    const server = newServer();
    const listening = await server.listen();
    const watch = await open(listening, `${CONFIG_MAPS}?watch=true`);
    assert.equal(watch.statusCode, 200);
    await send(listening, CONFIG_MAPS, { method: 'POST', body: JSON.stringify(configMap('a')) });
    const [chunk] = (await once(watch, 'data')) as [Buffer];
    assert.equal(JSON.parse(chunk.toString()).object.metadata.name, 'a');
    assert.equal(server.watches, 1);
    watch.destroy();
    while (server.watches > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  test('keeps all objects when it is closed and listens again on its port', async () => {
    const server = newServer();
    const first = await server.listen();
    await send(first, CONFIG_MAPS, { method: 'POST', body: JSON.stringify(configMap('a')) });
    const watch = await open(first, `${CONFIG_MAPS}?watch=true`);
    const broken = assert.rejects(textOf(watch), { code: 'ECONNRESET' });
    await first.close();
    await broken;
    assert.equal(server.watches, 0);
    await assert.rejects(send(first, CONFIG_MAPS), { code: 'ECONNREFUSED' });
    const second = await server.listen({ port: first.port });
    assert.equal(second.url, first.url);
    assert.equal(second.caPem, first.caPem);
    const { body } = await send(first, `${CONFIG_MAPS}/a`);
    assert.equal(body.metadata.name, 'a');
  });

  test('rejects a port that is in use', async () => {
    const server = newServer();
    const { port } = await server.listen();
    await assert.rejects(server.listen({ port }), { code: 'EADDRINUSE' });
  });

  test('a reset breaks the connection, and dropping watches ends a response in the middle', async () => {
    const server = newServer();
    const listening = await server.listen();
    server.faults.failNext('GET', 'reset');
    await assert.rejects(send(listening, CONFIG_MAPS), { code: 'ECONNRESET' });
    const watch = await open(listening, `${CONFIG_MAPS}?watch=true`);
    const text = textOf(watch);
    server.faults.dropWatches();
    await assert.rejects(text, { code: 'ECONNRESET' });
  });

  test('rejects bodies that are too large and unknown methods', async () => {
    const listening = await newServer().listen();
    const large = await send(listening, CONFIG_MAPS, {
      method: 'POST',
      body: `{"a":"${'x'.repeat(4 * 1024 * 1024)}"}`,
    });
    assert.equal(large.status, 413);
    assert.equal((await send(listening, CONFIG_MAPS, { method: 'OPTIONS' })).status, 405);
    assert.equal((await send(listening, '/api/v1/pods/%zz')).status, 400);
  });
});

describe('a rejected request', () => {
  test('is answered before its body has arrived', async () => {
    const server = newServer({ users: [{ token: 'janes', name: 'jane' }] });
    const { url, caPem } = await server.listen();
    for (const [token, expected] of [
      ['nobodys', 401],
      ['janes', 403],
    ] as const) {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
      const outgoing = request(`${url}${CONFIG_MAPS}`, {
        ca: caPem,
        agent: false,
        method: 'POST',
        headers,
      });
      outgoing.on('error', () => undefined);
      outgoing.write('{');
      const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
      assert.equal(incoming.statusCode, expected);
      outgoing.destroy();
    }
  });
});

describe('requests within the process', () => {
  test('require the token only if the server authenticates them', async () => {
    const ask = async (server: ApiServer, headers: Record<string, string> = {}) =>
      (await server.handler({ method: 'GET', path: '/api/v1/pods', headers })).status;
    assert.equal(await ask(newServer()), 200);
    const strict = new ApiServer({ authenticate: true });
    assert.equal(await ask(strict), 403);
    assert.equal(await ask(strict, { authorization: `Bearer ${strict.token}` }), 200);
  });

  test('an aborted request is rejected with the signal’s reason', async () => {
    const reason = new Error('enough');
    const signal = AbortSignal.abort(reason);
    const request = { method: 'GET', path: '/api/v1/pods', headers: {}, signal } as const;
    await assert.rejects(newServer().handler(request), reason);
  });
});

test('a kind that the test defines is served without a CRD', async () => {
  const widgets: ResourceDefinition = {
    group: 'example.com',
    version: 'v1',
    namespaced: true,
    plural: 'widgets',
    singular: 'widget',
    kind: 'Widget',
    listKind: 'WidgetList',
    shortNames: [],
    categories: [],
    subresources: {},
    columns: [],
  };
  const server = new ApiServer({ kinds: [...BUILTIN_KINDS, widgets] });
  const client = new HttpClient({ handler: server.handler, server: 'https://test' });
  const metadata = { name: 'one', namespace: 'default' };
  await client.create(widgets, { apiVersion: 'example.com/v1', kind: 'Widget', metadata });
  const { items } = await client.list(widgets);
  assert.deepEqual(
    items.map((item) => item.metadata.name),
    ['one'],
  );
});

test('clients can use a new server with the authority and token of the previous one', async () => {
  const identity = { authority: await createServerAuthority(), token: 'kept' };
  const listenings = [];
  for (let count = 0; count < 2; count++) {
    const server = new ApiServer(identity);
    servers.push(server);
    listenings.push(await server.listen());
  }
  const [first, second] = listenings;
  assert.ok(first && second);
  const response = await open({ ...second, caPem: first.caPem, token: first.token }, '/version');
  assert.equal(response.statusCode, 200);
  response.resume();
  assert.equal(second.token, 'kept');
});
