import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';
import { build } from 'esbuild';
import { parse } from 'yaml';

const root = join(import.meta.dirname, '../../..');

/** Globals that browsers have, too. The others of the context are those of the language. */
const WEB_GLOBALS = {
  AbortController,
  AbortSignal,
  CustomEvent,
  DOMException,
  Event,
  EventTarget,
  TextDecoder,
  TextEncoder,
  URL,
  URLSearchParams,
  clearTimeout,
  console,
  crypto,
  performance,
  queueMicrotask,
  setTimeout,
  structuredClone,
  // Of the classes of the language, a program has those that the globals above return.
  Uint8Array,
};

test('brings a Count to Ready in a browser', async () => {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ['test/support/browser-program.ts'],
    bundle: true,
    format: 'iife',
    globalName: 'program',
    platform: 'browser',
    metafile: true,
    write: false,
    logLevel: 'silent',
  });
  const inputs = Object.keys(metafile.inputs);
  assert.deepEqual(
    inputs.filter((file) => file.includes('/prom-client/')),
    [],
  );
  const crd = parse(readFileSync(join(root, 'crds/counts.demo.mark8s.io.yaml'), 'utf8')) as unknown;
  const count = {
    apiVersion: 'demo.mark8s.io/v1',
    kind: 'Count',
    metadata: { name: 'web', namespace: 'default' },
    spec: { name: 'nginx', count: 2 },
  };
  const call = [crd, count].map((value) => JSON.stringify(JSON.stringify(value)));
  const code = `${outputFiles[0]?.text}\nprogram.readyCount(${call.join()})`;
  const context = createContext({ ...WEB_GLOBALS });
  const status = JSON.parse(await (runInContext(code, context) as Promise<string>)) as object;
  assert.equal('readyReplicas' in status && status.readyReplicas, 2);
});
