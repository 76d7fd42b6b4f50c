export interface KubeconfigInput {
  readonly url: string;
  readonly caPem: string;
  readonly token: string;
}

const NAME = 'crd-controller';

/** A kubeconfig document with one cluster, one user and one context; JSON is YAML enough for it. */
export function kubeconfigOf({ url, caPem, token }: KubeconfigInput): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: NAME,
        cluster: {
          server: url,
          'certificate-authority-data': Buffer.from(caPem).toString('base64'),
        },
      },
    ],
    users: [{ name: NAME, user: { token } }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME, namespace: 'default' } }],
    'current-context': NAME,
  };
}
