import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../../src/api/builtin.ts';
import type { Listening } from '../../../src/apiserver/api-server-options.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import type { KeyAndRequest } from '../../support/certificate-request.ts';
import { certificateRequest, certificateSubject } from '../../support/certificate-request.ts';
import { ClusterBench } from './cluster-bench.ts';

const SIGNER = 'kubernetes.io/kube-apiserver-client';
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';

describe('CertificateSigningRequests', () => {
  let bench: ClusterBench;
  let listening: Listening;
  beforeEach(async () => {
    bench = new ClusterBench();
    listening = await bench.server.listen();
    await bench.start({
      controllers: ['certificatesigningrequest-signing'],
      authority: await bench.server.authority(),
    });
  });
  afterEach(async () => {
    await bench.end();
    await bench.server.close();
  });

  /** Creates a request, decides it, and returns its status. */
  async function decided(
    { pem }: KeyAndRequest,
    spec: object = {},
    type: 'Approved' | 'Denied' = 'Approved',
  ) {
    await bench.create(CERTIFICATE_SIGNING_REQUESTS, 'x', {
      spec: {
        request: Buffer.from(pem).toString('base64'),
        signerName: SIGNER,
        usages: ['client auth', 'digital signature'],
        ...spec,
      },
    });
    const conditions = [{ type, status: 'True', reason: 'Test', message: '' }];
    const body = { status: { conditions } };
    await bench.merge(CERTIFICATE_SIGNING_REQUESTS, 'x', body, 'approval');
    await bench.pass(1000);
    const { status } = await bench.get(CERTIFICATE_SIGNING_REQUESTS, 'x');
    await bench.client.delete(CERTIFICATE_SIGNING_REQUESTS, { name: 'x' });
    return status;
  }

  const pemOf = (certificate = '') => Buffer.from(certificate, 'base64').toString();

  /** Asks the server for the user of a certificate or token. */
  async function userOf(cert: string, key: string, headers: Record<string, string> = {}) {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const sent = request({
      host: '127.0.0.1',
      port: listening.port,
      // The certificate of the server has the virtual time.
      rejectUnauthorized: false,
      agent: false,
      cert,
      key,
      method: 'POST',
      path,
      headers: { 'content-type': 'application/json', ...headers },
    });
    sent.end('{}');
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return { code: response.statusCode, user: JSON.parse(text).status?.userInfo };
  }

  it('are signed when they are approved, for a client that can log in until the certificate expires', async () => {
    const own = certificateRequest('jane', ['devs', 'ops']);
    const status = await decided(own, { expirationSeconds: 3600 });
    const cert = pemOf(status?.certificate);
    const key = own.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const { code, user } = await userOf(cert, key);
    assert.equal(code, 201);
    assert.equal(user.username, 'jane');
    assert.deepEqual(user.groups, ['devs', 'ops', 'system:authenticated']);
    const { validTo } = new X509Certificate(cert);
    const left = Date.parse(validTo) - bench.clock.now();
    assert.ok(left > 3_590_000 && left <= 3_600_000, validTo);
    await bench.pass(3_600_000);
    assert.equal((await userOf(cert, key)).code, 401);
    const authorization = `Bearer ${listening.token}`;
    assert.equal((await userOf(cert, key, { authorization })).user.username, 'admin');
  });

  it('of another authority are not accepted', async () => {
    const { clock } = bench;
    const other = await createCertificateAuthority({ commonName: 'crd-controller-ca', clock });
    const { certificatePem, privateKeyPem } = await other.issue({
      commonName: 'jane',
      organizations: ['system:masters'],
      usages: 'client',
    });
    assert.equal((await userOf(certificatePem, privateKeyPem)).code, 401);
  });

  it('that are denied or name another signer get no certificate', async () => {
    assert.equal((await decided(certificateRequest('jane'), {}, 'Denied'))?.certificate, undefined);
    const others = { signerName: 'example.com/signer' };
    assert.equal((await decided(certificateRequest('jane'), others))?.certificate, undefined);
  });

  it('fail if the signer does not permit them', async () => {
    const nodes = ['system:nodes'];
    const cases: readonly (readonly [KeyAndRequest, object, string | undefined])[] = [
      [
        certificateRequest('jane'),
        { usages: ['server auth'] },
        'invalid usage for client certificate: server auth',
      ],
      [
        certificateRequest('system:node:a'),
        { signerName: KUBELET },
        'subject organization is not system:nodes',
      ],
      [
        certificateRequest('system:node:a', nodes, ['a.example.com']),
        { signerName: KUBELET },
        'DNS subjectAltNames are not allowed',
      ],
      [
        certificateRequest('a', nodes),
        { signerName: KUBELET },
        'subject common name does not begin with system:node:', // words-ok
      ],
      [
        certificateRequest('system:node:a', nodes),
        { signerName: SERVING, usages: ['digital signature', 'server auth'] },
        'DNS or IP subjectAltName is required',
      ],
      [
        certificateRequest('system:node:a', nodes, ['a.example.com']),
        { signerName: SERVING },
        'usages did not match [digital signature key encipherment server auth]',
      ],
    ];
    for (const [own, spec, why] of cases) {
      const { conditions, certificate } = (await decided(own, spec)) ?? {};
      assert.equal(conditions?.find(({ type }) => type === 'Failed')?.message, why);
      assert.equal(certificate, undefined);
    }
    const serving = await decided(certificateRequest('system:node:a', nodes, ['a.example.com']), {
      signerName: SERVING,
      usages: ['digital signature', 'server auth'],
    });
    const { subjectAltName } = new X509Certificate(pemOf(serving?.certificate));
    assert.equal(subjectAltName, 'DNS:a.example.com');
  });

  it('have no certificate if its subject differs from that of the request', async () => {
    const authority = await createCertificateAuthority({ commonName: 'other' });
    await bench.end();
    await bench.server.close();
    bench = new ClusterBench();
    const sign: typeof authority.sign = (order) =>
      authority.sign({ ...order, subject: certificateSubject('jane', ['system:masters']) });
    await bench.start({
      controllers: ['certificatesigningrequest-signing'],
      authority: { ...authority, sign },
    });
    const status = await decided(certificateRequest('jane', ['ops']));
    assert.equal(status?.certificate, undefined);
    assert.equal(status?.conditions?.at(-1)?.type, 'Failed');
  });
});
