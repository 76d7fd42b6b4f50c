import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import { parse, stringify } from 'yaml';
import { kubeconfigOf } from '../../../../src/apiserver/http/kubeconfig.ts';
import {
  newServerIdentity,
  readOwnKubeconfig,
  temporaryKubeconfig,
  writeKubeconfig,
} from '../../../../src/cli/embedded/kubeconfig-file.ts';
import type { ServerIdentity } from '../../../../src/cli/embedded/kubeconfig-file.ts';
import { FakeClock } from '../../../../src/util/fake-clock.ts';
import { loadCertificateAuthority } from '../../../../src/util/x509.ts';
import { findKubectl } from '../../../support/kubectl.ts';

const URL_OF_SERVER = 'https://127.0.0.1:6444';

function folderFor(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'kubeconfig-file-'));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function kubeconfigFor({ authority, ...credentials }: ServerIdentity): object {
  return kubeconfigOf({ url: URL_OF_SERVER, caPem: authority.certificatePem, ...credentials });
}

/** Returns a kubeconfig with the identity, as `serve` writes it. */
async function written(context: TestContext) {
  const path = join(folderFor(context), 'dev');
  const identity = await newServerIdentity();
  await writeKubeconfig(path, kubeconfigFor(identity), identity.authority);
  return { path, identity, keyFile: `${path}.ca-key` };
}

const identityIn = async (path: string) => (await readOwnKubeconfig(path))?.identity;

test('makes the file readable by its owner only, and leaves no temporary file', async (context) => {
  const folder = folderFor(context);
  const path = await writeKubeconfig(join(folder, 'dev'), { kind: 'Config' });
  assert.equal(path, join(folder, 'dev'));
  assert.match(readFileSync(path, 'utf8'), /^# Written by crd-controller.*\nkind: Config\n/);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['dev']);
});

test('overwrites its own file, and keeps the mode', async (context) => {
  const path = join(folderFor(context), 'dev');
  await writeKubeconfig(path, { kind: 'first' });
  await writeKubeconfig(path, { kind: 'second' });
  assert.equal(parse(readFileSync(path, 'utf8')).kind, 'second');
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test('reads the CA with its key, the token and the address of the previous server', async (context) => {
  const { path, identity, keyFile } = await written(context);
  const own = await readOwnKubeconfig(path);
  assert.deepEqual(own?.identity?.token, identity.token);
  assert.equal(own?.identity?.authority.certificatePem, identity.authority.certificatePem);
  assert.equal(own?.identity?.authority.privateKeyPem, identity.authority.privateKeyPem);
  assert.equal(own?.server?.port, '6444');
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.doesNotMatch(readFileSync(path, 'utf8'), /PRIVATE/);
});

const program = findKubectl();
const skip = program === undefined && 'there is no kubectl: put one on the PATH, or set $KUBECTL';

test('reads a client certificate that its CA has signed, and no other', async (context) => {
  const { path, identity } = await written(context);
  const issued = ({ authority }: ServerIdentity) => {
    const loaded = loadCertificateAuthority(authority, { commonName: 'crd-controller-ca' });
    return loaded.issue({ commonName: 'admin', usages: 'client' });
  };
  assert.equal((await identityIn(path))?.client, undefined, 'there is none');
  const client = await issued(identity);
  await writeKubeconfig(path, kubeconfigFor({ ...identity, client }), identity.authority);
  assert.deepEqual((await identityIn(path))?.client, client);
  const { privateKeyPem } = await issued(identity);
  for (const wrong of [{ ...client, privateKeyPem }, await issued(await newServerIdentity())]) {
    await writeKubeconfig(path, kubeconfigFor({ ...identity, client: wrong }), identity.authority);
    assert.equal((await identityIn(path))?.client, undefined);
    assert.equal((await identityIn(path))?.token, identity.token);
  }
});

test('recognises its own file after kubectl has rewritten it', { skip }, async (context) => {
  const { path, identity } = await written(context);
  const kubectl = (...args: string[]) =>
    execFileSync(program ?? '', ['config', `--kubeconfig=${path}`, ...args]);
  kubectl('set-context', '--current', '--namespace=team-a');
  kubectl('set-cluster', 'other', '--server=https://10.0.0.1');
  const text = readFileSync(path, 'utf8');
  assert.doesNotMatch(text, /Written by/, 'kubectl dropped the comment');
  assert.equal((await identityIn(path))?.token, identity.token);

  const next = await newServerIdentity();
  await writeKubeconfig(path, kubeconfigFor(next), next.authority);
  const document = parse(readFileSync(path, 'utf8'));
  assert.deepEqual(
    document.clusters.map(({ name }: { name: string }) => name),
    ['crd-controller', 'other'],
    'what others added stays',
  );
  assert.equal(document.contexts[0].context.namespace, 'team-a');
  assert.equal((await identityIn(path))?.token, next.token);
});

test('returns no identity if the key of the CA is missing or readable by others', async (context) => {
  const { path, identity, keyFile } = await written(context);
  const key = readFileSync(keyFile);
  chmodSync(keyFile, 0o640);
  assert.equal(await identityIn(path), undefined);
  chmodSync(keyFile, 0o600);
  assert.ok(await identityIn(path));
  for (const other of ['', 'no PEM', (await newServerIdentity()).authority.privateKeyPem]) {
    writeFileSync(keyFile, other);
    assert.equal(await identityIn(path), undefined, other);
  }
  writeFileSync(keyFile, key);
  const clock = new FakeClock(Date.now() + 340 * 24 * 60 * 60_000);
  assert.equal((await readOwnKubeconfig(path, clock))?.identity, undefined, 'it expires soon');
  const document = parse(readFileSync(path, 'utf8'));
  writeFileSync(path, stringify({ ...document, users: [] }));
  assert.equal(await identityIn(path), undefined);
  rmSync(keyFile);
  await writeKubeconfig(path, kubeconfigFor(identity), identity.authority);
  assert.ok(await identityIn(path));
});

test('rejects a key file that it did not write, and does not change it', async (context) => {
  const path = join(folderFor(context), 'dev');
  writeFileSync(`${path}.ca-key`, 'mine');
  const { authority, token } = await newServerIdentity();
  await assert.rejects(writeKubeconfig(path, kubeconfigFor({ authority, token }), authority), {
    name: 'UsageError',
    message: /dev\.ca-key exists and was not written by crd-controller/,
  });
  assert.equal(readFileSync(`${path}.ca-key`, 'utf8'), 'mine');
  assert.ok(!existsSync(path));
});

test('rejects a kubeconfig that it did not write, and does not change it', async (context) => {
  const folder = folderFor(context);
  const path = join(folder, 'config');
  for (const text of ['kind: Config # mine\n', '', '[', 'clusters: [{name: a, cluster: 1}, 2]\n']) {
    writeFileSync(path, text);
    await assert.rejects(writeKubeconfig(path, {}), {
      name: 'UsageError',
      message: `${path} exists and was not written by crd-controller: choose another file, or move it`,
    });
    assert.equal(readFileSync(path, 'utf8'), text);
  }
  assert.deepEqual(readdirSync(folder), ['config']);
});

test('names a missing folder, and a folder in place of the file', async (context) => {
  const folder = folderFor(context);
  await assert.rejects(writeKubeconfig(join(folder, 'no', 'dev'), {}), {
    name: 'UsageError',
    message: `Could not write the kubeconfig ${join(folder, 'no', 'dev')}: the folder ${join(folder, 'no')} does not exist`,
  });
  await assert.rejects(writeKubeconfig(folder, {}), { name: 'UsageError' });
});

test('removes a temporary kubeconfig with its folder', async () => {
  const file = await temporaryKubeconfig({});
  assert.ok(existsSync(file.path));
  await file.remove();
  assert.ok(!existsSync(dirname(file.path)));
});
