import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { HttpResponse } from '../../../../src/util/http.ts';
import { NODES, PODS } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Cluster } from '../../../../src/cluster/cluster.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';
import { silentLogger } from '../../../../src/util/logger.ts';

async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('Pod logs', () => {
  let clock: FakeClock;
  let server: ApiServer;
  let client: HttpClient;
  let stop: AbortController;
  let running: Promise<void>;
  let kubelet: () => ReturnType<Cluster['kubelet']>;

  beforeEach(async () => {
    clock = new FakeClock();
    server = new ApiServer({ clock, kubelets: (node) => cluster.kubelet(node) });
    client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
    const options = { controllers: ['scheduler', 'kubelet'], kubelet: { startupMs: 1000 } };
    const cluster = new Cluster({ client, clock, log: silentLogger }, options);
    kubelet = () => cluster.kubelet('node-1');
    stop = new AbortController();
    running = cluster.run(stop.signal);
    await clock.advance(1000);
  });
  afterEach(async () => {
    stop.abort();
    await clock.advance(10_000);
    await running;
  });

  const at = (name: string) => ({ namespace: 'default', name });
  const apply = (
    name: string,
    command: string[],
    annotations: Record<string, string> = {},
    env: { name: string; value: string }[] = [],
  ) =>
    client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...at(name), annotations },
      spec: { restartPolicy: 'OnFailure', containers: [{ name: 'app', image: 'i', command, env }] },
    });
  const ask = (name: string, query: string = '', signal?: AbortSignal) =>
    server.handler({
      method: 'GET',
      path: `/api/v1/namespaces/default/pods/${name}/log${query}`,
      headers: {},
      ...(signal && { signal }),
    });
  const log = async (name: string, query?: string) => {
    const response = await ask(name, query);
    const text = await textOf(response);
    return response.status === 200 ? text : (JSON.parse(text) as { message: string }).message;
  };

  it('are available from the start of the command, also after it has exited', async () => {
    await apply('job', ['echo', 'YAY']);
    await clock.advance(500);
    assert.equal(
      await log('job'),
      'container "app" in pod "job" is waiting to start: ContainerCreating',
    );
    await clock.advance(1000);
    const response = await ask('job');
    assert.equal(response.headers['content-type'], 'text/plain');
    assert.equal(await textOf(response), 'YAY\n');
    assert.equal((await client.get(PODS, at('job'))).status?.phase, 'Succeeded');
    await clock.advance(3_600_000);
    assert.equal(await log('job'), 'YAY\n');
  });

  it('continue at a client that attaches, which also runs commands', async () => {
    const command = ['sh', '-c', 'i=0; while true; do echo $i; i=$((i+1)); sleep 10; done'];
    await apply('loop', command, {}, [{ name: 'GREETING', value: 'hello' }]);
    await clock.advance(12_000);
    const connect = (command: readonly string[] | undefined, container = 'app') =>
      kubelet()?.exec?.({ namespace: 'default', pod: 'loop', container, command, tty: false });
    const { signal } = new AbortController();
    let attached = '';
    const stdout = async (bytes: Uint8Array) => {
      attached += Buffer.from(bytes).toString();
    };
    const attach = connect(undefined);
    assert.ok(attach?.kind === 'connected');
    const over = attach.target({ stdout, signal });
    await clock.advance(20_000);
    assert.equal(attached, '2\n3\n');
    const exec = connect(['sh', '-c', 'echo $GREETING; hostname; exit 3']);
    assert.ok(exec?.kind === 'connected');
    assert.equal(await exec.target({ stdout, signal }), 3);
    assert.ok(attached.endsWith('hello\nloop\n'));
    assert.equal(connect(['ls'], 'none')?.kind, 'error');
    await client.delete(PODS, at('loop'));
    await clock.advance(5000);
    assert.equal(await over, 0);
    assert.equal(connect(['ls'])?.kind, 'error');
  });

  it('can be limited by lines, bytes and time', async () => {
    await apply('job', ['echo', 'one\ntwo\nthree']);
    await clock.advance(2000);
    assert.equal(await log('job', '?tailLines=2'), 'two\nthree\n');
    assert.equal(await log('job', '?tailLines=0'), '');
    assert.equal(await log('job', '?limitBytes=5'), 'one\nt');
    await apply('umlaut', ['echo', 'ä']);
    await clock.advance(2000);
    assert.equal(await log('umlaut', '?limitBytes=2'), 'ä');
    const { startTime = '' } = (await client.get(PODS, at('job'))).status ?? {};
    const time = startTime.replace('Z', '');
    const stamped = await log('job', '?timestamps=true&tailLines=1');
    assert.match(stamped, new RegExp(String.raw`^${time}\.\d{3}000000Z three\n$`));
    assert.equal(await log('job', '?sinceSeconds=10'), 'one\ntwo\nthree\n');
    await clock.advance(60_000);
    assert.equal(await log('job', '?sinceSeconds=10'), '');
    assert.equal(await log('job', `?sinceTime=${startTime}&tailLines=1`), 'three\n');
  });

  it('of the run before a restart are available with previous', async () => {
    await apply('flaky', ['echo', 'trying'], { 'kubelet.crd-controller/exit-code': '1' });
    await apply('web', ['nginx']);
    await clock.advance(2000);
    assert.equal(await log('flaky'), 'trying\n');
    assert.equal(await log('flaky', '?previous=true'), 'trying\n');
    assert.equal(
      await log('web', '?previous=true'),
      'previous terminated container "app" in pod "web" not found',
    );
  });

  it('end with the container when they are followed', async () => {
    await apply('nap', ['sleep', '30']);
    await clock.advance(2000);
    const following = { ended: false };
    const text = ask('nap', '?follow=true').then(textOf);
    void text.then(() => (following.ended = true));
    await clock.advance(28_000);
    assert.equal(following.ended, false);
    await clock.advance(2000);
    assert.equal(await text, '');
  });

  it('contain the output of a loop as it is written', async () => {
    await apply('loop', ['sh', '-c', 'for i in 1 2 3; do echo "tick $i"; sleep 10; done']);
    await clock.advance(2000);
    assert.equal(await log('loop'), 'tick 1\n');
    const limited = ask('loop', '?follow=true&limitBytes=8').then(textOf);
    let text = '';
    const following = ask('loop', '?follow=true&tailLines=0').then(async ({ body }) => {
      for await (const chunk of body) text += Buffer.from(chunk).toString();
    });
    await clock.advance(10_000);
    assert.equal(text, 'tick 2\n');
    await clock.advance(10_000);
    assert.equal(text, 'tick 2\ntick 3\n');
    await clock.advance(10_000);
    await following;
    assert.equal(await limited, 'tick 1\nt');
    assert.equal((await client.get(PODS, at('loop'))).status?.phase, 'Succeeded');
    assert.equal(await log('loop'), 'tick 1\ntick 2\ntick 3\n');
    assert.equal(await log('loop', '?sinceSeconds=15'), 'tick 3\n');
  });

  it('are followed until the Pod is removed or replaced', async () => {
    await apply('web', ['nginx']);
    await clock.advance(2000);
    const following = ask('web', '?follow=true').then(textOf);
    await settle();
    await client.delete(PODS, at('web'));
    await clock.advance(5000);
    assert.equal(await following, '');
    await apply('web', ['nginx']);
    await clock.advance(2000);
    const again = ask('web', '?follow=true').then(textOf);
    await settle();
    await client.delete(PODS, at('web'), { gracePeriodSeconds: 0 });
    await apply('web', ['nginx']);
    await clock.advance(1);
    assert.equal(await again, '');
  });

  it('can be cancelled by the client', async () => {
    await apply('web', ['nginx']);
    await clock.advance(2000);
    const leave = new AbortController();
    const following = ask('web', '?follow=true', leave.signal).then(textOf);
    await settle();
    leave.abort(new Error('enough'));
    await assert.rejects(following, { message: 'enough' });
  });

  it('are not available for other nodes', async () => {
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'elsewhere' } };
    await client.create(NODES, node);
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: at('stray'),
      spec: { nodeName: 'elsewhere', containers: [{ name: 'app', image: 'i' }] },
    });
    assert.equal(await log('stray'), 'no preferred addresses found; known addresses: []');
  });
});
