import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ApiServer } from '../../src/apiserver/api-server.ts';
import { commandLine } from '../../src/cli/command-line.ts';
import { PROGRAM } from '../support/own-program.ts';

/** Commands that cannot start. test/processes verifies the exit code of the process. */
describe('A command that cannot start', () => {
  let folder: string;

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'refusals-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const run = async (...argv: readonly string[]) => {
    const output = { stdout: '', stderr: '' };
    const warn = (text: string) => (output.stderr += `${text}\n`);
    const code = await commandLine(
      PROGRAM,
      argv,
      { HOME: '/nonexistent' },
      {
        print: (text) => (output.stdout += `${text}\n`),
        warn,
        colour: false,
        logging: { write: (line) => (output.stderr += line), now: Date.now, pid: 1 },
      },
    );
    assert.doesNotMatch(output.stderr, /^\s+at .*:\d+:\d+/m);
    return { code, ...output };
  };

  it('reports an invalid kubeconfig in one line, with exit code 2', async () => {
    const errorOf = async (text: string) => {
      const file = join(folder, 'config');
      writeFileSync(file, text, { mode: 0o600 });
      const { code, stdout, stderr } = await run(`--kubeconfig=${file}`);
      assert.equal(code, 2, stderr);
      assert.equal(stdout, '');
      assert.match(stderr, /^Error: [^\n]+\n$/);
      assert.ok(stderr.includes(file), stderr);
      return stderr;
    };
    assert.match(await errorOf('clusters: [\n'), /is malformed: line \d+, column \d+/);
    assert.match(await errorOf('hello'), /is not a kubeconfig/);
    assert.match(await errorOf('{"kind":"Config"}'), /no current context is set/);
    const nothing = await run();
    assert.equal(nothing.code, 2);
    assert.match(nothing.stderr, /^Error: No cluster is configured: .*crd-controller serve\.\n$/);
  });

  it('reports a probe address that is in use, with exit code 2', async () => {
    const server = new ApiServer();
    const listening = await server.listen();
    const file = join(folder, 'kubeconfig');
    writeFileSync(file, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
    const address = `127.0.0.1:${listening.port}`;
    const { code, stderr } = await run(
      `--kubeconfig=${file}`,
      `--health-probe-bind-address=${address}`,
    );
    await server.close();
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`\nError: .*${address.replaceAll('.', '\\.')}.*in use`));
  });

  it('serve does not overwrite a kubeconfig that it did not write', async () => {
    const file = join(folder, 'mine');
    writeFileSync(file, 'mine');
    const { code, stderr } = await run('serve', `--write-kubeconfig=${file}`);
    assert.equal(code, 2);
    assert.match(stderr, /^Error: .* exists and was not written by crd-controller/);
    assert.equal(readFileSync(file, 'utf8'), 'mine');
  });

  it('serve reports a port that is in use', async (context) => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    context.after(() => holder.close());
    const { port } = holder.address() as AddressInfo;
    const { code, stderr } = await run('serve', `--port=${port}`);
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`^Error: Port ${port} on 127\\.0\\.0\\.1 is in use`));
  });
});
