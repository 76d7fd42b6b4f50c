import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { top } from '../../../../src/cli/commands/top.ts';
import { UsageError } from '../../../../src/cli/exit-codes.ts';

function run(address: string) {
  const printed: string[] = [];
  const warned: string[] = [];
  const world = {
    print: (text: string) => printed.push(text),
    warn: (text: string) => warned.push(text),
    signal: new AbortController().signal,
    colour: false,
  };
  const flags = { address, interval: 1000, once: true };
  return { printed, warned, code: top(flags, world) };
}

test('an address must be on this machine', async () => {
  for (const address of ['', 'here', '6060', '10.0.0.1:6060', 'example.com:80', '127.0.0.1:x']) {
    await assert.rejects(run(address).code, (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(
        error.message,
        /for --address: must be HOST:PORT on this machine.*port-forward$/,
      );
      return true;
    });
  }
});

test('a daemon that is not there is told, and is a failure if there is no second look', async () => {
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
      /^Error: No answer from \S+: connection refused\. Is it what the daemon was given as --debug-bind-address\?$/,
    );
  }
});
