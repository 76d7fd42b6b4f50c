import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { serve } from '../../../../src/cli/commands/serve.ts';
import { parseFlags } from '../../../../src/cli/flags/flag-parser.ts';
import { SERVE_OPTIONS } from '../../../../src/cli/flags/options.ts';
import { createLogging } from '../../../../src/cli/logs/logging.ts';
import { environmentOf, PROGRAM } from '../../../support/own-program.ts';

const LOGGING = {
  format: 'text',
  verbosity: 0,
  vmodule: [],
  skipHeaders: true,
  addDirHeader: false,
} as const;

describe('crd-controller serve', () => {
  let folder: string;
  let printed: string[];
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'serve-'));
    printed = [];
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** Serves until a script of Node.js, which gets `FOLDER`, has ended. */
  const run = (flags: readonly string[], script: string) => {
    const { log, level } = createLogging(LOGGING);
    const { values } = parseFlags(SERVE_OPTIONS, flags, environmentOf());
    const context = {
      program: PROGRAM,
      log,
      logging: LOGGING,
      logLevel: level,
      signal: new AbortController().signal,
      environment: { ...process.env, FOLDER: folder },
      print: (text: string) => void printed.push(text),
      warn: (text: string) => void printed.push(text),
      colour: false,
    };
    return serve(values, context, [process.execPath, '-e', script]);
  };

  it('loads manifests, runs a command with a kubeconfig of its own, and removes that', async () => {
    const manifest = join(folder, 'a.yaml');
    await writeFile(manifest, '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}');
    const script =
      "fs.writeFileSync(process.env.FOLDER + '/path', process.env.KUBECONFIG); process.exit(3)";
    assert.equal(await run([`--load=${manifest}`], script), 3);
    assert.deepEqual(printed, ['configmap/a created']);
    const path = await readFile(join(folder, 'path'), 'utf8');
    assert.deepEqual(
      [path !== '', existsSync(path), existsSync(join(path, '..'))],
      [true, false, false],
    );
  });

  it('keeps objects in its data folder, and changes them by manifests', async () => {
    const manifest = join(folder, 'a.yaml');
    for (const data of ['{x: "1"}', '{x: "2"}']) {
      const text = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: ${data}}`;
      await writeFile(manifest, text);
      assert.equal(await run([`--load=${manifest}`, `--data-dir=${join(folder, 'data')}`], ''), 0);
    }
    assert.deepEqual(printed, ['configmap/a created', 'configmap/a configured']);
  });

  it('ends with its command if one of its parts fails', async (context) => {
    const taken = createServer();
    context.after(() => taken.close());
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    const script = "setTimeout(() => fs.writeFileSync(process.env.FOLDER + '/ended', ''), 10_000)";
    const ending = run(['--web', `--web-port=${port}`], script);
    await assert.rejects(ending, /EADDRINUSE/);
    assert.equal(existsSync(join(folder, 'ended')), false);
  });
});
