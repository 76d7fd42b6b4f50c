import type { Certificate } from '../../util/x509.ts';

export interface KubeconfigInput {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
  /**
   * Certificate of the same user, for programs that expect one.
   * @default none
   */
  readonly client?: Certificate | undefined;
}

const NAME = 'crd-controller';

/** A kubeconfig document with one cluster, one user and one context; JSON is YAML enough for it. */
export function kubeconfigOf({ url, caPem, token, client }: KubeconfigInput): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: NAME,
        cluster: {
          server: url,
          'certificate-authority-data': base64(caPem),
        },
      },
    ],
    users: [
      {
        name: NAME,
        user: {
          ...(client && {
            'client-certificate-data': base64(client.certificatePem),
            'client-key-data': base64(client.privateKeyPem),
          }),
          token,
        },
      },
    ],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
  };
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
