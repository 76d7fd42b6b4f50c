import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { clientNodeBundle } from '../../../../hack/client-node-bundle.ts';

const root = join(import.meta.dirname, '../../../..');

/** Loads a configuration and connects, and prints the modules of packages that were loaded since the last line. */
const PROGRAM = `
import { registerHooks } from 'node:module';
const loaded = new Set();
registerHooks({
  resolve(specifier, context, next) {
    const found = next(specifier, context);
    const [, name] = /node_modules\\/(.*)/.exec(found.url) ?? [];
    if (name !== undefined) loaded.add(name);
    return found;
  },
});
const { connectCluster, loadClusterConfig } = await import('./src/index.ts');
await import('./src/cli/commands/run.ts');
const [folder] = process.argv.slice(1);
const print = () => console.log([...loaded].sort().join(' ')) ?? loaded.clear();
const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
for (const environment of [pod, { KUBECONFIG: folder + '/config' }]) {
  const config = await loadClusterConfig({ environment, home: folder, serviceAccountDirectory: folder });
  await connectCluster(config).close();
  print();
}`;

test('loads client-node only with a kubeconfig, never in a Pod', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'modules-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'token'), 'abc');
  const config = {
    'current-context': 'x',
    contexts: [{ name: 'x', context: { cluster: 'x' } }],
    clusters: [{ name: 'x', cluster: { server: 'https://x' } }],
  };
  await writeFile(join(folder, 'config'), JSON.stringify(config), { mode: 0o600 });
  const args = ['--input-type=module', '-e', PROGRAM, folder];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root });
  const [inPod = '', withKubeconfig] = stdout.split('\n');
  assert.ok(inPod.includes('p-queue'), 'the modules were recorded');
  assert.doesNotMatch(inPod, /client-node|yaml/);
  assert.match(withKubeconfig ?? '', /@kubernetes\/client-node\/dist\/config\.js/);
});

test('the build leaves out what a kubeconfig does not need', async () => {
  const imports = (await clientNodeBundle()).matchAll(/^import .*? from "([^"]+)";$/gm);
  const packages = [...imports]
    .map(([, name = '']) => name)
    .filter((name) => !name.startsWith('node:'));
  assert.deepEqual(packages.toSorted(), [
    '@kubernetes/client-node/dist/config_types.js',
    '@kubernetes/client-node/dist/exec_auth.js',
    '@kubernetes/client-node/dist/file_auth.js',
    'js-yaml',
  ]);
});
