import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, Server } from 'node:http';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { isApiError } from '../../../src/api/api-error.ts';
import { connectCluster } from '../../../src/client/cluster-connection.ts';
import { KubeConfigError } from '../../../src/client/kube-config/kube-config-error.ts';
import { loadClusterConfig } from '../../../src/client/kube-config/kube-config.ts';
import { TimeoutError } from '../../../src/util/within-timeout.ts';
import type { Certificate, CertificateAuthority } from '../../../src/util/x509.ts';
import { createCertificateAuthority, subjectNamesOf } from '../../../src/util/x509.ts';
import type { Form } from './forms.ts';
import { jwt } from './oidc-server.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

/** A folder with the files that the forms name. */
export class FormFolder {
  readonly path: string = mkdtempSync(join(tmpdir(), 'forms-'));
  readonly #values: Readonly<Record<string, string>>;
  #count = 0;

  private constructor(
    { certificatePem }: CertificateAuthority,
    client: Certificate,
    other: Certificate,
    ports: { readonly https: number; readonly http: number },
  ) {
    const ca = base64(certificatePem);
    // Without line breaks at the end, the base64 of some certificates has no padding.
    const padded = base64(certificatePem + '\n'.repeat((4 - (certificatePem.length % 3)) % 3));
    this.#values = {
      SERVER: `https://127.0.0.1:${ports.https}`,
      PORT: String(ports.https),
      HTTP_PORT: String(ports.http),
      CA: padded,
      UNPADDED_CA: padded.replace(/=+$/, ''),
      BROKEN_CA: ca.replace(/.{64}/g, '$&\\n'),
      SPACED_CA: ca.replace(/.{64}/g, '$& '),
      CERT: base64(client.certificatePem),
      KEY: base64(client.privateKeyPem),
      OTHER_KEY: base64(other.privateKeyPem),
      DIR: this.path,
      NAME: basename(this.path),
      JWT: jwt(4_000_000_000),
      OLD_JWT: jwt(1),
    };
    const write = (name: string, text: string, mode = 0o600) =>
      writeFileSync(join(this.path, name), text, { mode });
    write('ca.crt', certificatePem);
    write('client.crt', client.certificatePem);
    write('client.key', client.privateKeyPem);
    write('token', 'from-file\n');
    write('empty', '');
    const print = (name: string, text: string) =>
      write(name, `#!/bin/sh\ncat <<'EOF'\n${text}\nEOF\n`, 0o700);
    const credential = (status: object | undefined, version = 'v1', kind = 'ExecCredential') =>
      JSON.stringify({ apiVersion: `client.authentication.k8s.io/${version}`, kind, status });
    print('json', credential({ token: 'plugin' }));
    print('beta', credential({ token: 'plugin' }, 'v1beta1'));
    print(
      'yaml',
      'apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus:\n  token: plugin',
    );
    print('two', `${credential({ token: 'plugin' })}\n${credential({ token: 'second' })}`);
    print(
      'number',
      'apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus:\n  token: 12',
    );
    print('kind', credential({ token: 'plugin' }, 'v1', 'Pod'));
    print('nothing', credential(undefined));
    print('half', credential({ token: 'plugin', clientCertificateData: client.certificatePem }));
    print('expiry', credential({ token: 'plugin', expirationTimestamp: 'tomorrow' }));
    print('date', credential({ token: 'plugin', expirationTimestamp: '2036-01-02' }));
    print('unknown', credential({ token: 'plugin', other: 1 }));
    const pair = {
      clientCertificateData: client.certificatePem,
      clientKeyData: client.privateKeyPem,
    };
    print('certificate', credential(pair));
    print('mismatch', credential({ ...pair, clientKeyData: other.privateKeyPem }));
    write('fails', '#!/bin/sh\nexit 3\n', 0o700);
    write(
      'echo',
      `#!/bin/sh\nprintf '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"args-%s-env-%s"}}' "$*" "$B"\n`,
      0o700,
    );
  }

  static async create(
    authority: CertificateAuthority,
    ports: { readonly https: number; readonly http: number },
  ): Promise<FormFolder> {
    const issue = (commonName: string) => authority.issue({ commonName, usages: 'client' });
    return new FormFolder(authority, await issue('client'), await issue('other'), ports);
  }

  /** Writes the files of a form. Returns their paths as a value of KUBECONFIG. */
  write({ files, ...form }: Form): string {
    const id = this.#count++;
    return (files ?? [textOf(form)])
      .map((text, index) => {
        const path = join(this.path, `config-${id}-${index}`);
        writeFileSync(path, this.#filled(text), { mode: 0o600 });
        return path;
      })
      .join(delimiter);
  }

  #filled(text: string): string {
    return text.replace(/\$([A-Z_]+)/g, (whole, name: string) => this.#values[name] ?? whole);
  }

  close(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function textOf({
  text,
  server,
  ca,
  cluster,
  user = 'token: abc',
  context,
  before,
  after,
}: Form): string {
  if (text !== undefined) return text;
  const fields = [`server: ${server ?? '$SERVER'}`, ca ?? 'certificate-authority-data: $CA'];
  if (cluster !== undefined) fields.push(cluster);
  return `${before ?? ''}apiVersion: v1
kind: Config
current-context: x
contexts:
- name: x
  context: {${context ?? 'cluster: x, user: x'}}
clusters:
- name: x
  cluster: {${fields.join(', ')}}
users:
- name: x
  user: {${user}}
${after ?? ''}`;
}

/** Sends a request by a kubeconfig. Returns its credentials, or `refused`. */
export async function requestBy(
  { files }: Form,
  kubeconfig: string,
  folder: FormFolder,
  server: RecordingServer,
  requestTimeoutMs: number,
): Promise<string> {
  const environment = { PATH: process.env['PATH'], ...(files && { KUBECONFIG: kubeconfig }) };
  try {
    const config = await loadClusterConfig({
      ...(!files && { kubeconfig }),
      environment,
      home: folder.path,
    });
    const connection = connectCluster(config, { requestTimeoutMs });
    try {
      await connection.client.raw({ path: '/api' });
    } finally {
      await connection.close();
    }
  } catch (error) {
    const isRefusal = error instanceof KubeConfigError || error instanceof TimeoutError;
    if (!isRefusal && !isApiError(error)) throw error;
  }
  return server.take() ?? 'refused';
}

/** A server that records its last request. */
export class RecordingServer {
  readonly authority: CertificateAuthority;
  readonly ports: { readonly https: number; readonly http: number };
  #servers: readonly Server[];
  #seen: string | undefined;

  private constructor(authority: CertificateAuthority, servers: readonly Server[]) {
    this.authority = authority;
    this.#servers = servers;
    const [https = 0, http = 0] = servers.map((server) => (server.address() as AddressInfo).port);
    this.ports = { https, http };
    for (const server of servers) {
      server.on('request', (request: IncomingMessage, response) => {
        this.#seen = summaryOf(request);
        response.setHeader('content-type', 'application/json');
        response.end('{"kind":"Status","apiVersion":"v1"}');
      });
    }
  }

  static async start(): Promise<RecordingServer> {
    const authority = await createCertificateAuthority({ commonName: 'forms' });
    const { certificatePem: cert, privateKeyPem: key } = await authority.issue({
      commonName: 'server',
      usages: 'server',
      dnsNames: ['localhost', 'other.example'],
      ipAddresses: ['127.0.0.1'],
    });
    const options = { cert, key, requestCert: true, rejectUnauthorized: false };
    const servers = [createSecureServer(options), createServer()];
    for (const server of servers) {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
    }
    return new RecordingServer(authority, servers);
  }

  /** Returns the summary of the last request, once. */
  take(): string | undefined {
    const seen = this.#seen;
    this.#seen = undefined;
    return seen;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    }
  }
}

function summaryOf({ url = '', headers, socket }: IncomingMessage): string {
  const parts: string[] = [];
  const x509 = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  if (x509) parts.push(`certificate ${subjectNamesOf(x509).commonName}`);
  const { authorization } = headers;
  if (authorization?.startsWith('Basic ')) {
    parts.push(`basic ${Buffer.from(authorization.slice(6), 'base64').toString()}`);
  } else if (authorization !== undefined) parts.push(authorization.replace(/ey\S+/, 'JWT'));
  if (parts.length === 0) parts.push('anonymous');
  const impersonation = Object.entries(headers).filter(([name]) => name.startsWith('impersonate-'));
  parts.push(
    ...impersonation.map(([name, value]) => `${name.slice(12)} ${String(value)}`).toSorted(),
  );
  const prefix = url.replace(/\?timeout=\d+s$/, '').replace(/\/api$/, '');
  if (prefix !== '') parts.push(`at ${prefix}`);
  return parts.join(', ');
}
