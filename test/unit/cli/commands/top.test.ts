import assert from 'node:assert/strict';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { PODS } from '../../../../src/api/builtin.ts';
import { ApiServer } from '../../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../../src/client/http-client.ts';
import { Controller } from '../../../../src/manager/controller.ts';
import { runControllers } from '../../../../src/manager/run-controllers.ts';
import type { ControllerManagerOptions } from '../../../../src/manager/run-controllers.ts';
import { metricsOf } from '../../../../src/metrics/metrics.ts';
import { createRegistry } from '../../../../src/metrics/registry.ts';
import { done } from '../../../../src/workqueue/outcome.ts';
import { recordingLogger } from '../../../support/recording-logger.ts';
import { until } from '../../../support/until.ts';
import { top } from '../../../../src/cli/commands/top.ts';
import { UsageError } from '../../../../src/cli/errors.ts';

function run(address: string) {
  const printed: string[] = [];
  const warned: string[] = [];
  const context = {
    print: (text: string) => printed.push(text),
    warn: (text: string) => warned.push(text),
    signal: new AbortController().signal,
    colour: false,
  };
  const flags = { address, interval: 1000, once: true };
  return { printed, warned, code: top(flags, context) };
}

test('requires a loopback address', async () => {
  for (const address of ['', 'here', '6060', '10.0.0.1:6060', 'example.com:80', '127.0.0.1:x']) {
    await assert.rejects(run(address).code, (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(
        error.message,
        /for --address: must be a loopback address HOST:PORT.*port-forward$/,
      );
      return true;
    });
  }
});

test('fails if the daemon does not respond to a single print', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  for (const address of [`:${port}`, `localhost:${port}`]) {
    const { code, printed, warned } = run(address);
    assert.equal(await code, 1);
    assert.deepEqual(printed, []);
    assert.match(
      warned.join(),
      /^Error: Cannot show \S+: connection refused\. Set --address to the daemon's --debug-bind-address\.$/,
    );
  }
});

/** Returns a program on the library with a controller of Pods and debug pages. */
function program(options: Partial<ControllerManagerOptions> = {}) {
  const server = new ApiServer();
  const client = new HttpClient({ handler: server.handler, server: 'https://test' });
  const { log, lines } = recordingLogger();
  const stop = new AbortController();
  const controllers: ControllerManagerOptions['controllers'] = (kit) => [
    new Controller(kit, { name: 'labeller', kind: PODS.kind, sync: async () => done() }).for(
      kit.informers.for(PODS),
    ),
  ];
  const debug = { bindAddress: '127.0.0.1:0', version: 'v1.2.3' };
  const running = runControllers({ client, log, controllers, debug, ...options }, stop.signal);
  const address = () =>
    lines.map(({ fields }) => fields['address']).find((found) => typeof found === 'string');
  return {
    running,
    address: () => until('the pages are served', async () => address()),
    end: async () => {
      stop.abort();
      await running;
    },
  };
}

test('shows a program on the library, with and without metrics', async () => {
  for (const options of [{}, { metrics: metricsOf(createRegistry()) }]) {
    const { address, end } = program(options);
    const { code, printed, warned } = run(await address());
    assert.equal(await code, 0, warned.join());
    assert.match(printed.join('\n'), /v1\.2\.3/);
    assert.match(printed.join('\n'), /labeller/);
    assert.match(printed.join('\n'), /pods/);
    await end();
  }
});

test('rejects debug addresses of programs that are not loopback', async () => {
  for (const bindAddress of [':6060', '0.0.0.0:6060', 'example.com:6060']) {
    await assert.rejects(program({ debug: { bindAddress } }).running, {
      name: 'RangeError',
      message: /debug\.bindAddress must be a loopback address/,
    });
  }
});

test('names the required flag once if the server has no debug pages', async (context) => {
  const server = createHttpServer((_, response) => response.writeHead(404).end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  context.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const { code, warned } = run(`127.0.0.1:${port}`);
  assert.equal(await code, 1);
  assert.equal(warned.join().match(/--debug-bind-address/g)?.length, 1);
  assert.match(warned.join(), /it responded with 404 to \/debug\/(status|queues)/);
});
