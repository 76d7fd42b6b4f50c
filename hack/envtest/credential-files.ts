import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCertificateAuthority } from '../../src/util/x509.ts';
import type { CertificateAuthority } from '../../src/util/x509.ts';

const AUTHORITY = 'envtest-ca';

/** Writes the certificates and keys of kube-apiserver and its users, and returns the flags that name them. */
export async function writeCredentials(
  folder: string,
  token: string,
): Promise<{ readonly ca: string; readonly flags: readonly string[] }> {
  const authority = await createCertificateAuthority({ commonName: AUTHORITY });
  const serviceAccountKey = generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
  const flags = await writeFiles(folder, {
    ...(await servingFiles(authority)),
    'client-ca-file': authority.certificatePem,
    'service-account-key-file': serviceAccountKey,
    'service-account-signing-key-file': serviceAccountKey,
    'token-auth-file': `${token},envtest-admin,envtest-admin,"system:masters"\n`,
  });
  await writeFiles(folder, { 'client-ca-key': authority.privateKeyPem });
  return { ca: authority.certificatePem, flags };
}

/** Replaces the serving certificate of kube-apiserver by one of a new CA, and returns the PEM of the CA. */
export async function replaceServingAuthority(folder: string): Promise<string> {
  // The same name, as for a rotated CA.
  const authority = await createCertificateAuthority({ commonName: AUTHORITY });
  await writeFiles(folder, await servingFiles(authority));
  return authority.certificatePem;
}

/** Returns the serving certificate of kube-apiserver and its key. */
async function servingFiles(authority: CertificateAuthority) {
  const serving = await authority.issue({
    commonName: 'kube-apiserver',
    dnsNames: ['localhost', 'kubernetes', 'kubernetes.default.svc'],
    ipAddresses: ['127.0.0.1', '10.0.0.1'],
    usages: 'server',
  });
  return {
    'tls-cert-file': serving.certificatePem,
    'tls-private-key-file': serving.privateKeyPem,
  };
}

/** Writes a file for each flag by its name, and returns the flags. */
async function writeFiles(
  folder: string,
  files: Readonly<Record<string, string>>,
): Promise<string[]> {
  return Promise.all(
    Object.entries(files).map(async ([flag, content]) => {
      const path = join(folder, flag);
      await writeFile(path, content, { mode: 0o600 });
      return `--${flag}=${path}`;
    }),
  );
}

/** Returns a kubeconfig as JSON, which is also YAML. */
export function kubeconfig(server: string, ca: string, token: string): string {
  const name = 'envtest';
  const certificateAuthority = Buffer.from(ca).toString('base64');
  return JSON.stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name, cluster: { server, 'certificate-authority-data': certificateAuthority } }],
      users: [{ name, user: { token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      'current-context': name,
    },
    undefined,
    2,
  );
}
