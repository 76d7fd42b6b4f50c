/**
 * The `KubeConfig` of client-node and its OpenID Connect provider, without the generated API, HTTP agents and proxies
 * that they import. The build writes it in place of `src/client/kube-config/client-node.ts`. See decision 0001.
 */
import { dirname, join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '..');

/** The module that imports client-node, relative to the folder of the program's source or output. */
export const CLIENT_NODE_MODULE = 'client/kube-config/client-node';

const absent = (...names: readonly string[]) =>
  names.map((name) => `export const ${name} = undefined;`).join('\n');
const noProvider = (name: string) => `export class ${name} { isAuthProvider() { return false; } }`;

/**
 * Modules that are replaced: those of requests, which we send, of base64, which Node.js has, and of the providers that
 * client-go has no more.
 */
const LEFT_OUT = new Map([
  ['./gen/index.js', absent('createConfiguration', 'ServerConfiguration')],
  ['./middleware.js', absent('setHeaderMiddleware')],
  ['undici', absent('Agent', 'ProxyAgent')],
  ['socks', absent('SocksClient')],
  ['socks-proxy-agent', absent('SocksProxyAgent')],
  ['hpagent', absent('HttpProxyAgent', 'HttpsProxyAgent')],
  ['openid-client', absent('discovery', 'customFetch', 'refreshTokenGrant')],
  ['rfc4648', `export const base64url = { parse: (text) => Buffer.from(text, 'base64url') };`],
  ['./azure_auth.js', noProvider('AzureAuth')],
  ['./gcp_auth.js', noProvider('GoogleCloudPlatformAuth')],
]);

/**
 * Returns the module that replaces it.
 *
 * @param external packages that the module imports, in addition to js-yaml
 */
export async function clientNodeBundle(external: readonly string[] = []): Promise<string> {
  const folder = join(root, 'node_modules/@kubernetes/client-node');
  const { outputFiles } = await build({
    stdin: {
      contents: `export { KubeConfig } from './config.js';\nexport { OpenIDConnectAuth } from './oidc_auth.js';\n`,
      resolveDir: join(folder, 'dist'),
    },
    absWorkingDir: root,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    legalComments: 'none',
    external: ['js-yaml', ...external],
    plugins: [
      {
        name: 'leave-out',
        setup(plugin) {
          plugin.onResolve({ filter: /.*/ }, ({ path, importer }) => {
            if (LEFT_OUT.has(path)) return { path, namespace: 'left-out' };
            // The other modules of the package are imported at run time.
            const isOwn = path.startsWith('./') && dirname(importer) === join(folder, 'dist');
            return isOwn && !['./config.js', './oidc_auth.js'].includes(path)
              ? { path: `@kubernetes/client-node/dist/${path.slice(2)}`, external: true }
              : undefined;
          });
          plugin.onLoad({ filter: /.*/, namespace: 'left-out' }, ({ path }) => ({
            contents: LEFT_OUT.get(path) ?? '',
          }));
        },
      },
    ],
  });
  const text = outputFiles[0]?.text ?? '';
  return `// Contains parts of @kubernetes/client-node (Apache-2.0).\n${text}`;
}
