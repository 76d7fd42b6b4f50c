import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
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
import { UsageError } from '../../../../src/cli/common/errors.ts';

/** Sequence that shows the screen from before the program. */
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

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
      /^Error: Cannot show \S+: connection refused\. Set --address to the program's --debug-bind-address\.$/,
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
    client,
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

test('shows the page of a key on a terminal, and restores the terminal', async (context) => {
  if (process.platform !== 'linux') return context.skip('script has other options');
  const { address, client, end } = program();
  context.after(end);
  await client.create(PODS, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default' },
    spec: { containers: [{ name: 'main', image: 'nginx' }] },
  });
  const main = join(import.meta.dirname, '../../../../src/cli/main.ts');
  const top = `${process.execPath} ${main} top --address=${await address()} --interval=100ms`;
  // The settings of the terminal before and after.
  const shell = `stty rows 24 cols 100; stty -g; ${top}; echo "code $?"; stty -g`;
  const terminal = spawn('script', ['--quiet', '--command', shell, '/dev/null'], {
    env: { ...process.env, TERM: 'xterm', FORCE_COLOR: '0' },
  });
  context.after(() => terminal.kill());
  let output = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  const shows = (text: string) =>
    until(`the terminal shows ${text}`, async () => output.includes(text) || undefined);
  const press = (keys: string) => terminal.stdin.write(keys);
  await shows('> labeller');
  press('\r');
  await shows('Queue labeller');
  // The row of the key is in the table of the slowest keys.
  press('\u001b[B\r');
  await shows('Key default/web');
  // It is listed or added: the controller may have started before the Pod was created.
  await shows('Pod default/web ');
  press('\u001b');
  await until(
    'the page is closed',
    async () => output.lastIndexOf('Queue ') > output.lastIndexOf('Key ') || undefined,
  );
  press('qq');
  await once(terminal, 'close');
  const [settings, rest = ''] = output.split(/\r\n(.*)/s);
  assert.ok(rest.endsWith(`${LEAVE}code 0\r\n${settings}\r\n`), JSON.stringify(rest.slice(-200)));
});
