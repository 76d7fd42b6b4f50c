import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Resource } from '../../../src/api/resource.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { ClientRequestLog } from '../../../src/client/request-log.ts';
import { emptyBody } from '../../../src/util/http.ts';
import type { CredentialSource } from '../../../src/client/kube-config/cluster-config.ts';
import type { LogLine } from '../../support/recording-logger.ts';
import { recordingLogger } from '../../support/recording-logger.ts';
import { CONFIG_MAPS } from '../../../src/api/builtin.ts';
import { bodyOf, configMap, sendJson, sendStatus, serve } from './server.ts';

const SECRETS: Resource = { ...CONFIG_MAPS, plural: 'secrets', kind: 'Secret' };
const AT = { namespace: 'default', name: 'settings' };

async function connect(
  t: TestContext,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  verbosity: number,
  credentials: CredentialSource = { kind: 'none' },
) {
  const { url } = await serve(t, listener);
  const { log, lines } = recordingLogger([], verbosity);
  const connection = connectCluster(
    {
      source: 'test',
      server: url,
      insecureSkipTlsVerify: false,
      credentials,
      namespace: 'default',
    },
    { log, userAgent: 'test/1' },
  );
  t.after(() => connection.close());
  return { client: connection.client, lines, url };
}

function textOf(lines: readonly LogLine[]): string {
  return lines
    .map((line) => `${line.message} ${JSON.stringify(line)} ${String(line.error)}`)
    .join('\n');
}

test('logs a call in one line from 6 on, headers from 7 on, bodies from 8 on', async (t) => {
  const messagesAt = async (verbosity: number) => {
    const { client, lines, url } = await connect(
      t,
      (_request, response) => sendJson(response, configMap('settings')),
      verbosity,
    );
    await client.update(CONFIG_MAPS, configMap('settings'));
    return { messages: lines.map(({ message }) => message), lines, url };
  };
  assert.deepEqual((await messagesAt(5)).messages, []);
  const six = await messagesAt(6);
  assert.deepEqual(six.messages, ['Response']);
  const { milliseconds, ...fields } = six.lines[0]!.fields;
  assert.equal(typeof milliseconds, 'number');
  assert.deepEqual(fields, {
    verb: 'PUT',
    url: `${six.url}/api/v1/namespaces/default/configmaps/settings`,
    status: 200,
  });
  const seven = await messagesAt(7);
  assert.deepEqual(seven.messages, ['Request', 'Response']);
  assert.deepEqual(seven.lines[0]!.fields['headers'], {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'test/1',
  });
  assert.deepEqual((await messagesAt(8)).messages, [
    'Request',
    'Request Body',
    'Response',
    'Response Body',
  ]);
});

test('truncates bodies at 1024 characters, from 9 on at 10240, from 10 on not at all', async (t) => {
  const object = { ...configMap('settings'), data: { key: 'x'.repeat(20_000) } };
  const size = JSON.stringify(object).length;
  const lengthAt = async (verbosity: number) => {
    const { client, lines } = await connect(
      t,
      (_request, response) => sendJson(response, object),
      verbosity,
    );
    await client.get(CONFIG_MAPS, AT);
    return String(lines.find(({ message }) => message === 'Response Body')?.fields['body']);
  };
  assert.match(await lengthAt(8), new RegExp(`^.{1024} \\[truncated ${size - 1024} chars\\]$`));
  assert.match(await lengthAt(9), new RegExp(`^.{10240} \\[truncated ${size - 10_240} chars\\]$`));
  assert.equal(await lengthAt(10), JSON.stringify(object));
});

test('masks only the confidential values of a JSON patch', async (t) => {
  const respond = (_request: IncomingMessage, response: ServerResponse) =>
    sendJson(response, configMap('settings'));
  const { client, lines } = await connect(t, respond, 8);
  const body = [
    { op: 'replace', path: '/data/a', value: 'shown' },
    { op: 'replace', path: '/spec/containers/0/env/0/value', value: 'hidden' },
  ] as const;
  await client.patch(CONFIG_MAPS, AT, { type: 'json', body });
  const sent = String(lines.find(({ message }) => message === 'Request Body')?.fields['body']);
  assert.match(sent, /"shown".*"<masked>"/);
});

test('masks credentials, Secrets and variables in logs and errors, at any verbosity', async (t) => {
  const canary = 'canary7f';
  const encoded = Buffer.from(canary).toString('base64');
  const pair = Buffer.from(`me:${canary}`).toString('base64');
  const secret = {
    ...configMap('settings'),
    kind: 'Secret',
    data: { config: encoded },
    stringData: { config: canary },
  };
  // Servers omit the kind of list items.
  const { kind: _kind, ...bare } = secret;
  const pod = {
    ...configMap('settings'),
    metadata: {
      ...configMap('settings').metadata,
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': canary },
    },
    spec: { containers: [{ env: [{ name: 'PASSWORD', value: canary }] }] },
    token: canary,
    template: secret,
  };
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    void bodyOf(request).then(() => {
      const headers = { 'set-cookie': `session=${canary}` };
      if (request.url?.includes('/secrets/cut')) {
        response.writeHead(200, { 'content-type': 'application/json', ...headers });
        response.end(`{"kind":"Secret","data":${canary}}`);
      } else if (request.url?.includes('/denied'))
        sendStatus(response, 401, 'Unauthorized', headers);
      else if (request.url?.includes('/broken')) response.destroy();
      else if (request.url?.includes('watch='))
        response.end(`${JSON.stringify({ type: 'ADDED', object: secret })}\n{"${canary}`);
      else if (/\/secrets(\?|$)/.test(request.url ?? ''))
        sendJson(response, { kind: 'SecretList', metadata: {}, items: [bare] }, 200, headers);
      else sendJson(response, request.url?.includes('/secrets') ? secret : pod, 200, headers);
    });
  };
  const users: CredentialSource[] = [
    { kind: 'token', token: canary },
    { kind: 'basic', username: 'me', password: canary },
  ];
  for (const verbosity of [0, 6, 7, 8, 9, 10]) {
    for (const user of users) {
      const { client, lines } = await connect(t, listener, verbosity, user);
      const errors: unknown[] = [];
      const note = (error: unknown) => errors.push(error);
      await client.get(SECRETS, AT);
      await client.list(SECRETS);
      await client.list(SECRETS, { limit: 500 });
      await client.create(SECRETS, secret);
      await client.update(CONFIG_MAPS, pod);
      await client.get(SECRETS, { ...AT, name: 'cut' }).catch(note);
      await client.get(CONFIG_MAPS, { ...AT, name: 'denied' }).catch(note);
      await client.update(CONFIG_MAPS, configMap('broken')).catch(note);
      await client.raw({
        method: 'POST',
        path: '/apis/authentication.k8s.io/v1/tokenreviews',
        body: { spec: { token: canary } },
      });
      const events = await client.watch(SECRETS);
      await Array.fromAsync(events).catch(note);
      assert.equal(errors.length, 4);
      const shown = `${textOf(lines)} ${errors.map((error) => (error as Error).stack).join('\n')}`;
      for (const form of [canary, encoded, pair]) {
        assert.ok(!shown.includes(form), `${form} at -v=${verbosity}: ${shown}`);
      }
      if (verbosity >= 8) assert.match(shown, /<masked>/);
    }
  }
});

test('masks the query of a redirect', () => {
  const { log, lines } = recordingLogger([], 7);
  const call = { verb: 'GET', url: 'https://test/api', path: '/api' };
  const headers = { location: 'https://login.example.com/x?token=canary#canary' };
  new ClientRequestLog(log).response(call, { status: 302, headers, body: emptyBody() }, 1);
  assert.doesNotMatch(textOf(lines), /canary/);
  assert.match(textOf(lines), /login\.example\.com/);
});
