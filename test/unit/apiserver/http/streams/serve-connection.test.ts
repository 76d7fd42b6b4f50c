import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:https';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { Exec, KubeConfig, PortForward } from '@kubernetes/client-node';
import type { V1Status } from '@kubernetes/client-node';
import type { Kubelet } from '../../../../../src/api/kubelet.ts';
import { ApiServer } from '../../../../../src/apiserver/api-server.ts';
import { pod } from '../../../../conformance/objects.ts';

/** A kubelet whose commands write their name and input, and exit with their number of arguments. */
const kubelet: Kubelet = Object.assign(
  async () => ({ status: 404, headers: {}, body: (async function* () {})() }),
  {
    exec: ({
      command = ['attached'],
      container,
    }: {
      command?: readonly string[];
      container: string;
    }) => {
      if (command[0] === 'none') {
        return {
          kind: 'error',
          status: 500,
          message: `container not found ("${container}")`,
        } as const;
      }
      const target: Exclude<
        ReturnType<NonNullable<Kubelet['exec']>>,
        { kind: 'error' }
      >['target'] = async ({ stdin, stdout, stderr }) => {
        await stdout?.(Buffer.from(`${command[0]}:`));
        for await (const bytes of stdin ?? []) await stdout?.(bytes);
        await stderr?.(Buffer.from('end'));
        return command.length - 1;
      };
      return { kind: 'connected', target } as const;
    },
    ports: () => ({
      kind: 'connected' as const,
      target: (port: number) => {
        if (port !== 80) throw new Error('connection refused');
        return async ({ path }: { path: string }) => ({
          status: 200,
          headers: { 'content-type': 'text/plain' },
          body: (async function* () {
            yield Buffer.from(`at ${path}`);
          })(),
        });
      },
    }),
  },
) as Kubelet;

let served: Awaited<ReturnType<typeof serve>>;

before(async () => {
  served = await serve();
});

after(() => served.server.close());

async function serve() {
  const server = new ApiServer({ kubelets: () => kubelet });
  const { url, caPem, token, port } = await server.listen();
  const post = (path: string, body: object) =>
    server.handler({ method: 'POST', path, headers: {}, body: JSON.stringify(body) });
  await post('/api/v1/nodes', { metadata: { name: 'n' } });
  const running = pod('p');
  running.spec.nodeName = 'n';
  running.spec.containers[0]!.ports = [{ containerPort: 80, name: 'http' }];
  await post('/api/v1/namespaces/default/pods', running);
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: 'c', server: url, caData: Buffer.from(caPem).toString('base64'), skipTLSVerify: false },
    { name: 'u', token },
  );
  const send = async (method: string, path: string, headers: Readonly<Record<string, string>>) => {
    const options = { host: '127.0.0.1', port, ca: caPem, agent: false, method, path };
    const authorization = `Bearer ${token}`;
    const sent = request({ ...options, headers: { ...headers, authorization } });
    const [response] = await once(sent.end(), 'response');
    const chunks: Uint8Array[] = [];
    for await (const chunk of response) chunks.push(chunk);
    return { status: response.statusCode as number, text: Buffer.concat(chunks).toString() };
  };
  return { config, send, server, container: running.spec.containers[0]!.name };
}

const POD = '/api/v1/namespaces/default/pods/p';

function collector() {
  const stream = new PassThrough();
  let text = '';
  stream.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  return { stream, text: () => text };
}

test('a client of WebSockets runs a command with input, output, errors and an exit code', async () => {
  const { config, container } = served;
  const [out, err, stdin] = [collector(), collector(), new PassThrough()];
  const run = async (command: string[], input?: PassThrough) => {
    const { promise, resolve } = Promise.withResolvers<V1Status>();
    const exec = new Exec(config);
    await exec.exec(
      'default',
      'p',
      container,
      command,
      out.stream,
      err.stream,
      input ?? null,
      false,
      resolve,
    );
    return promise;
  };
  stdin.end('typed');
  const failed = await run(['cat', 'a', 'b'], stdin);
  assert.deepEqual([out.text(), err.text()], ['cat:typed', 'end']);
  assert.deepEqual(
    [failed.status, failed.reason, failed.details?.causes],
    ['Failure', 'NonZeroExitCode', [{ reason: 'ExitCode', message: '2' }]],
  );
  const none = await run(['none']);
  assert.equal(
    none.message,
    `Internal error occurred: unable to upgrade connection: container not found ("${container}")`,
  );
});

test('a client of WebSockets forwards a port', async () => {
  const { config } = served;
  const forward = new PortForward(config);
  for (const [port, wanted] of [
    [80, /^HTTP\/1\.1 200 OK\r\n[^]*at \/x\?y=z$/],
    [81, /^error forwarding port 81 to pod p, uid .*: connection refused$/],
  ] as const) {
    const [output, input] = [new PassThrough(), new PassThrough()];
    const socket = await forward.portForward('default', 'p', [port], output, output, input);
    input.write('GET /x?y=z HTTP/1.1\r\nhost: a\r\n\r\n');
    let text = '';
    for await (const chunk of output) {
      text += chunk;
      if (wanted.test(text)) break;
    }
    assert.ok(socket);
    (socket as { close(): void }).close();
  }
});

test('a request that cannot be upgraded is refused as by a kubelet', async () => {
  const { send, container } = served;
  const spdy = { connection: 'Upgrade', upgrade: 'SPDY/3.1' };
  const v4 = { ...spdy, 'x-stream-protocol-version': 'v4.channel.k8s.io' };
  const socket = {
    connection: 'Upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
  };
  for (const [method, path, headers, status, message] of [
    ['POST', '/exec?stdout=1', {}, 400, /"Upgrade request required"/],
    ['POST', '/exec?stdout=1', spdy, 403, /^unable to upgrade: unable to negotiate protocol/],
    ['POST', '/exec', v4, 400, /^you must specify at least 1 of stdin, stdout, stderr$/],
    ['POST', '/exec?stdout=1&command=none', v4, 500, /^container not found/],
    ['GET', '/exec?stdout=1', { ...socket, 'sec-websocket-protocol': 'v9' }, 403, /^$/],
    ['GET', '/portforward', socket, 400, /^query parameter "port" is required$/],
    ['GET', '/portforward?ports=0', socket, 400, /^port "0" must be > 0$/],
  ] as const) {
    const separator = path.includes('?') ? '&' : '?';
    const reply = await send(method, `${POD}${path}${separator}container=${container}`, headers);
    assert.equal(reply.status, status, path);
    assert.match(reply.text, message, path);
  }
});

test('a proxy answers with the server of the Pod', async () => {
  const { send } = served;
  assert.equal((await send('GET', `${POD}/proxy`, {})).status, 301);
  assert.equal((await send('GET', `${POD}/proxy/a/b?c=d`, {})).text, 'at /a/b?c=d');
  assert.equal((await send('GET', `${POD}:81/proxy/`, {})).status, 503);
});
