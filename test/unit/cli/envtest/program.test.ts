import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { text } from 'node:stream/consumers';
import { etcd } from '../../../../src/cli/envtest/etcd.ts';
import { kubeApiserver } from '../../../../src/cli/envtest/kube-apiserver.ts';
import type { EnvtestProgram } from '../../../../src/cli/envtest/program.ts';
import { Deferred } from '../../../../src/util/deferred.ts';
import { systemClock } from '../../../../src/util/clock.ts';
import { createCertificateAuthority } from '../../../../src/util/x509.ts';

let folder: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'crd-controller-envtest-'));
});

after(() => rm(folder, { recursive: true }));

/** Runs a program, and `work` with the port that it prints. Returns its exit code and its lines on standard error. */
async function running(
  program: EnvtestProgram,
  args: readonly string[],
  work: (port: number) => Promise<void>,
): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  const stop = new AbortController();
  const lines: string[] = [];
  const listening = new Deferred<number>();
  const ending = program(args, {
    signal: stop.signal,
    print: () => undefined,
    warn: (line) => {
      lines.push(line);
      const [, port] = /(?:port |:)(\d+)$/.exec(line) ?? [];
      if (port !== undefined) listening.resolve(Number(port));
    },
  });
  try {
    await work(await listening.promise);
  } finally {
    stop.abort();
  }
  return { code: await ending, lines };
}

async function get(options: RequestOptions): Promise<{ status: number; body: string }> {
  const sent = request({ host: '127.0.0.1', ...options }).end();
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, body: await text(response) };
}

test('etcd answers the health checks of a test environment', async () => {
  const args = ['--listen-client-urls=http://127.0.0.1:0', '--data-dir', folder];
  const { code } = await running(etcd, [...args, '--unsafe-no-fsync=true'], async (port) => {
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
    assert.equal((await fetch(`http://127.0.0.1:${port}/v3/kv/range`)).status, 404);
  });
  assert.equal(code, 0);
});

test('kube-apiserver serves with the certificates of a test environment', async () => {
  const [serving, clients] = await Promise.all(
    ['serving', 'clients'].map((commonName) =>
      createCertificateAuthority({ commonName, clock: systemClock }),
    ),
  );
  assert.ok(serving && clients);
  const certificate = await serving.issue({
    commonName: 'localhost',
    ipAddresses: ['127.0.0.1'],
    usages: 'server',
  });
  await writeFile(join(folder, 'apiserver.crt'), certificate.certificatePem);
  await writeFile(join(folder, 'apiserver.key'), certificate.privateKeyPem);
  await writeFile(join(folder, 'client-ca.crt'), clients.certificatePem);
  const args = [
    `--cert-dir=${folder}`,
    `--client-ca-file=${join(folder, 'client-ca.crt')}`,
    '--bind-address',
    '127.0.0.1',
    '--secure-port',
    '0',
    '--etcd-servers=http://127.0.0.1:1',
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
    '--allow-privileged=true',
    '--feature-gates=AllAlpha=true',
  ];
  const { code, lines } = await running(kubeApiserver, args, async (port) => {
    const as = async (commonName: string, organizations: readonly string[], path: string) => {
      const issued = await clients.issue({ commonName, organizations, usages: 'client' });
      const { certificatePem: cert, privateKeyPem: key } = issued;
      return (await get({ port, path, ca: serving.certificatePem, cert, key })).status;
    };
    const health = await get({ port, path: '/healthz', ca: serving.certificatePem });
    assert.deepEqual(health, { status: 200, body: 'ok' });
    assert.equal(await as('admin', ['system:masters'], '/api/v1/pods'), 200);
    assert.equal(await as('jane', [], '/api/v1/pods'), 403);
  });
  assert.equal(code, 0);
  const [ignored] = lines;
  assert.match(ignored ?? '', /: --feature-gates=AllAlpha=true$/);
});

test('kube-apiserver creates the certificate that a folder lacks', async () => {
  const certDir = join(folder, 'new');
  const args = [`--cert-dir=${certDir}`, '--bind-address=127.0.0.1', '--secure-port=0'];
  const { code } = await running(kubeApiserver, args, async (port) => {
    const ca = await readFile(join(certDir, 'apiserver.crt'), 'utf8');
    assert.equal((await get({ port, path: '/readyz', ca })).status, 200);
  });
  assert.equal(code, 0);
});

test('a flag that upstream does not have is an error', async () => {
  const never = new AbortController();
  for (const program of [etcd, kubeApiserver]) {
    const lines: string[] = [];
    const context = { signal: never.signal, print: () => undefined };
    const code = await program(['--bogus'], { ...context, warn: (line) => lines.push(line) });
    assert.notEqual(code, 0);
    assert.match(lines.join(), /unknown flag: --bogus/);
  }
});
