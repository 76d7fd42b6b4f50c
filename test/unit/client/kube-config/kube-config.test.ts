import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { ClusterConfigOptions } from '../../../../src/client/kube-config/kube-config.ts';
import {
  fromKubeConfig,
  loadClusterConfig,
} from '../../../../src/client/kube-config/kube-config.ts';
import { KubeConfigError } from '../../../../src/client/kube-config/kube-config-error.ts';

/** A home folder with files, and a loader that ignores the rest of this machine. */
async function machine(t: TestContext) {
  const home = await mkdtemp(join(tmpdir(), 'home-'));
  t.after(() => rm(home, { recursive: true }));
  const serviceAccountDirectory = join(home, 'serviceaccount');
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(home, name);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, text, { mode: 0o600 });
    return path;
  };
  const load = (options: ClusterConfigOptions = {}) =>
    loadClusterConfig({ home, serviceAccountDirectory, environment: {}, ...options });
  return { home, write, load, serviceAccountDirectory };
}

/** A kubeconfig with one context, cluster and user of the same name. */
function kubeconfig(name: string, user = 'token: abc', cluster = `server: https://${name}:6443`) {
  return `apiVersion: v1
kind: Config
current-context: ${name}
contexts:
- name: ${name}
  context: {cluster: ${name}, user: ${name}, namespace: ${name}-ns}
clusters:
- name: ${name}
  cluster: {${cluster}}
users:
- name: ${name}
  user: {${user}}
`;
}

async function refusal(loading: Promise<unknown>): Promise<string> {
  const error = await loading.then(
    () => assert.fail('it succeeded'),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof KubeConfigError, String(error));
  assert.doesNotMatch(error.message, /\n/);
  return error.message;
}

test('prefers the flag, then KUBECONFIG, then the service account, then the home folder', async (t) => {
  const { home, write, load, serviceAccountDirectory } = await machine(t);
  const flag = await write('flag', kubeconfig('flag'));
  const variable = await write('variable', kubeconfig('variable'));
  await write('.kube/config', kubeconfig('home'));
  await write('serviceaccount/token', 'abc');
  await write('serviceaccount/namespace', 'pod-ns\n');
  const inCluster = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
  const all = { ...inCluster, KUBECONFIG: variable };

  const byFlag = await load({ kubeconfig: flag, environment: all });
  assert.equal(byFlag.server, 'https://flag:6443');
  assert.equal(byFlag.source, flag);
  assert.equal((await load({ environment: all })).server, 'https://variable:6443');
  assert.deepEqual(await load({ environment: inCluster }), {
    source: 'in-cluster',
    server: 'https://[fd00::1]',
    ca: { kind: 'file', path: join(serviceAccountDirectory, 'ca.crt') },
    insecureSkipTlsVerify: false,
    credentials: { kind: 'tokenFile', path: join(serviceAccountDirectory, 'token') },
    namespace: 'pod-ns',
  });
  assert.equal((await load()).server, 'https://home:6443');
  await rm(join(serviceAccountDirectory, 'token'));
  assert.equal((await load({ environment: inCluster })).server, 'https://home:6443');
  await rm(join(home, '.kube'), { recursive: true });
  assert.match(await refusal(load()), /^No cluster is configured: .*--kubeconfig/);
});

test('merges several files of KUBECONFIG; the first definition of a name is used', async (t) => {
  const { home, write, load } = await machine(t);
  const first = await write(
    'first',
    'current-context: b\nclusters:\n- name: a\n  cluster: {server: "https://first-a:1"}\n',
  );
  const second = await write(
    'second/config',
    kubeconfig('a', 'client-certificate: a.crt, client-key: /a.key'),
  );
  const third = await write('third', kubeconfig('b'));
  const KUBECONFIG = [first, join(home, 'missing'), second, third].join(delimiter);

  const current = await load({ environment: { KUBECONFIG } });
  assert.equal(current.server, 'https://b:6443');
  assert.equal(current.namespace, 'b-ns');
  const chosen = await load({ environment: { KUBECONFIG }, context: 'a' });
  assert.equal(chosen.server, 'https://first-a:1');
  assert.deepEqual(chosen.credentials, {
    kind: 'clientCertificate',
    certificate: { kind: 'file', path: join(home, 'second', 'a.crt') },
    key: { kind: 'file', path: '/a.key' },
  });
  const missing = { KUBECONFIG: join(home, 'missing') };
  assert.match(await refusal(load({ environment: missing })), /KUBECONFIG is set to .*missing/);
});

test('reads every kind of user', async (t) => {
  const { home, write, load } = await machine(t);
  const pem = (text: string) => Buffer.from(`-----BEGIN ${text}-----`).toString('base64');
  const credentialsOf = async (user: string) => {
    const file = await write('config', kubeconfig('x', user));
    return (await load({ kubeconfig: file })).credentials;
  };
  assert.deepEqual(await credentialsOf(''), { kind: 'none' });
  assert.deepEqual(await credentialsOf('token: abc'), { kind: 'token', token: 'abc' });
  assert.deepEqual(await credentialsOf('tokenFile: sub/token, token: abc'), {
    kind: 'tokenFile',
    path: join(home, 'sub', 'token'),
    token: 'abc',
  });
  assert.deepEqual(await credentialsOf('username: me, password: secret'), {
    kind: 'basic',
    username: 'me',
    password: 'secret',
  });
  assert.deepEqual(
    await credentialsOf(`client-certificate-data: ${pem('C')}, client-key-data: ${pem('K')}`),
    {
      kind: 'clientCertificate',
      certificate: { kind: 'data', pem: '-----BEGIN C-----' },
      key: { kind: 'data', pem: '-----BEGIN K-----' },
    },
  );
});

test('resolves paths of an exec user against the kubeconfig, and passes the environment', async (t) => {
  const { home, write, load } = await machine(t);
  const user = `exec: {
    apiVersion: client.authentication.k8s.io/v1beta1, command: ./bin/plugin, args: [get, "1"],
    env: [{name: OWN, value: x}], installHint: try this, provideClusterInfo: true, interactiveMode: IfAvailable}`;
  const cluster = `server: "https://x", extensions: [
    {name: client.authentication.k8s.io/exec, extension: {audience: api}}]`;
  const file = await write('config', kubeconfig('x', user, cluster));
  const { credentials } = await load({
    kubeconfig: file,
    environment: { PATH: '/bin', OWN: 'old' },
  });
  assert.deepEqual(credentials, {
    kind: 'exec',
    command: join(home, 'bin', 'plugin'),
    args: ['get', '1'],
    environment: { PATH: '/bin', OWN: 'x' },
    apiVersion: 'client.authentication.k8s.io/v1beta1',
    provideClusterInfo: true,
    installHint: 'try this',
    clusterSettings: { audience: 'api' },
  });
  const nulls = `exec: {apiVersion: client.authentication.k8s.io/v1, command: plugin, args: null, env: null, interactiveMode: Never}`;
  const bare = await load({ kubeconfig: await write('bare', kubeconfig('x', nulls)) });
  assert.ok(bare.credentials.kind === 'exec');
  assert.equal(bare.credentials.command, 'plugin');
});

test('reads impersonation from the file, and flags override it', async (t) => {
  const { write, load } = await machine(t);
  const user = `token: abc, as: alice, as-uid: u1, as-groups: [devs], as-user-extra: {scope: [a, b]}`;
  const file = await write('config', kubeconfig('x', user));
  assert.deepEqual((await load({ kubeconfig: file })).impersonation, {
    user: 'alice',
    uid: 'u1',
    groups: ['devs'],
    extra: new Map([['scope', ['a', 'b']]]),
  });
  assert.deepEqual((await load({ kubeconfig: file, as: 'bob', asGroups: ['ops'] })).impersonation, {
    user: 'bob',
    groups: ['ops'],
    extra: new Map(),
  });
  assert.match(await refusal(load({ kubeconfig: file, asGroups: ['ops'] })), /Add --as\./);
});

test('uses the address of --master without any other configuration', async (t) => {
  const { write, load } = await machine(t);
  const file = await write('config', kubeconfig('x'));
  const replaced = await load({ kubeconfig: file, master: 'https://other:1/path/' });
  assert.equal(replaced.server, 'https://other:1/path');
  assert.deepEqual(replaced.credentials, { kind: 'token', token: 'abc' });
  const alone = await load({ master: 'http://127.0.0.1:8001' });
  assert.equal(alone.server, 'http://127.0.0.1:8001');
  assert.deepEqual(alone.credentials, { kind: 'none' });
  for (const local of ['http://localhost:1', 'http://[::1]:1', 'localhost:1'])
    await load({ master: local });
});

test('rejects an address that is invalid or would expose credentials', async (t) => {
  const { write, load } = await machine(t);
  for (const plain of ['http://10.0.0.1', '10.0.0.1:6443']) {
    assert.match(await refusal(load({ master: plain })), /unencrypted\. Use https/);
  }
  const plain = await write('plain', kubeconfig('x', '', 'server: "http://x:80"'));
  assert.match(await refusal(load({ kubeconfig: plain })), /plain: http:\/\/x would send/);
  for (const wrong of ['ftp://x', 'https://', 'https://x ', 'https://x\\y', 'x:1/y']) {
    assert.match(await refusal(load({ master: wrong })), /is not a server address/);
  }
  const withUser = await refusal(load({ master: 'https://me:canary@x' }));
  assert.match(withUser, /must not contain a user/);
  assert.doesNotMatch(withUser, /canary/);
});

test('reports a missing or wrong entry in one line, with file and next step', async (t) => {
  const { home, write, load } = await machine(t);
  const wrong = async (text: string, options: ClusterConfigOptions = {}) => {
    const file = await write('config', text);
    const message = await refusal(load({ kubeconfig: file, ...options }));
    assert.ok(message.startsWith(file) || message.includes(file), message);
    assert.doesNotMatch(message, /canary/);
    return message;
  };
  assert.match(
    await refusal(load({ kubeconfig: join(home, 'none') })),
    /none does not exist.*--kubeconfig/,
  );
  assert.match(await refusal(load({ kubeconfig: home })), /Cannot read the kubeconfig .*EISDIR/);
  assert.match(
    await wrong('users: [\n  token: canary'),
    /malformed: line \d+, column \d+: unexpected end [\w ]+\. Correct it/,
  );
  assert.match(await wrong('a: &a [x]\nb: *nothing'), /malformed|aliases/);
  assert.match(await wrong('kind: Pod'), /is not a kubeconfig/);
  assert.match(await wrong('canary'), /is not a kubeconfig/);
  assert.match(await wrong(''), /no current context is set.*--context/);
  assert.match(
    await wrong(kubeconfig('x'), { context: 'y' }),
    /there is no context "y" \(it has x\)/,
  );
  const without = (section: string) => kubeconfig('x').replace(section, `other-${section}`);
  assert.match(await wrong(without('clusters:')), /there is no cluster "x" \(it has none\)/);
  assert.match(await wrong(without('users:')), /there is no user "x"/);
  assert.match(await wrong(kubeconfig('x', '', '')), /cluster "x": .*server is missing/);
  assert.match(await wrong(kubeconfig('x', '', 'server: [1]')), /cluster "x"/);
  const cases: [user: string, message: RegExp][] = [
    ['auth-provider: {name: gcp}', /auth-provider "gcp" is not supported.*exec plugin/],
    ['client-certificate: a.crt', /client-certificate needs a client-key/],
    ['client-certificate-data: canary, client-key-data: canary', /data is not base64/],
    ['client-certificate-data: YWJj, client-key-data: YWJj', /not PEM in base64/],
    ['token: [canary]', /user "x": token must be a string/],
    [
      'exec: {command: x, apiVersion: client.authentication.k8s.io/v1alpha1}',
      /v1alpha1 is not supported/,
    ],
    ['exec: {apiVersion: client.authentication.k8s.io/v1}', /exec\.command is missing/],
    [
      'exec: {apiVersion: client.authentication.k8s.io/v1, command: x, interactiveMode: Always}',
      /requires a terminal/,
    ],
  ];
  for (const [user, message] of cases) assert.match(await wrong(kubeconfig('x', user)), message);
});

test('ignores a wrong entry that is not used', async (t) => {
  const { write, load } = await machine(t);
  const text = `${kubeconfig('x')}- name: broken\n  user: {auth-provider: {name: gcp}}\n`;
  const file = await write('config', text);
  assert.equal((await load({ kubeconfig: file })).server, 'https://x:6443');
});

test('does not run if the environment disables certificate verification', async (t) => {
  const { write, load } = await machine(t);
  const file = await write('config', kubeconfig('x'));
  const environment = { NODE_TLS_REJECT_UNAUTHORIZED: '0' };
  assert.match(await refusal(load({ kubeconfig: file, environment })), /Unset it/);
});

test('warns about files that others can read, and about disabled verification', async (t) => {
  const { write, load } = await machine(t);
  const warnings: string[] = [];
  const onWarning = (warning: string) => warnings.push(warning);
  const file = await write(
    'config',
    kubeconfig('x', '', 'server: "https://x", insecure-skip-tls-verify: true'),
  );
  const config = await load({ kubeconfig: file, onWarning });
  assert.equal(config.insecureSkipTlsVerify, true);
  assert.match(warnings.join('\n'), /^[^\n]*insecure-skip-tls-verify is set[^\n]*$/);
  await chmod(file, 0o644);
  await load({ kubeconfig: file, onWarning });
  assert.match(String(warnings[1]), /is group- and world-readable.*chmod 600/);
});

test('reads the proxy from the file, or from the environment with its exceptions', async (t) => {
  const { write, load } = await machine(t);
  const file = await write('config', kubeconfig('x.example.com'));
  const proxyOf = async (environment: Record<string, string>, master?: string) =>
    (await load({ kubeconfig: file, environment, master })).proxyUrl;
  const HTTPS_PROXY = 'proxy:3128';
  assert.equal(await proxyOf({}), undefined);
  assert.equal(await proxyOf({ HTTPS_PROXY }), 'http://proxy:3128');
  assert.equal(await proxyOf({ https_proxy: 'http://lower:1' }), 'http://lower:1');
  for (const NO_PROXY of [
    '*',
    'a, example.com',
    '.example.com',
    'x.example.com:6443',
    'X.EXAMPLE.COM',
  ]) {
    assert.equal(await proxyOf({ HTTPS_PROXY, NO_PROXY }), undefined, NO_PROXY);
  }
  for (const NO_PROXY of ['', 'ample.com', '.x.example.com', 'x.example.com:443', '10.0.0.0/8']) {
    assert.equal(await proxyOf({ HTTPS_PROXY, NO_PROXY }), 'http://proxy:3128', NO_PROXY);
  }
  const NO_PROXY = '10.0.0.0/8,fd00::/8,192.168.1.1';
  for (const host of ['10.1.2.3', '[fd00::1]', '192.168.1.1', '127.0.0.1']) {
    assert.equal(await proxyOf({ HTTPS_PROXY, NO_PROXY }, `https://${host}:1`), undefined, host);
  }
  assert.equal(await proxyOf({ HTTPS_PROXY, NO_PROXY }, 'https://11.0.0.1'), 'http://proxy:3128');

  const own = await write(
    'own',
    kubeconfig('x', '', 'server: "https://x", proxy-url: "http://own:1"'),
  );
  assert.equal(
    (await load({ kubeconfig: own, environment: { HTTPS_PROXY } })).proxyUrl,
    'http://own:1',
  );
  for (const [given, shown] of [
    ['ftp://me:can/ary@own:1', 'ftp://own:1'],
    ['me:can@ary@own:1', 'own:1'],
    ['http://me:can/ary@own:1', 'http://own:1'],
    ['socks5://', 'socks5://'],
  ] as const) {
    const odd = await write(
      'odd',
      kubeconfig('x', '', `server: "https://x", proxy-url: "${given}"`),
    );
    const message = await refusal(load({ kubeconfig: odd }));
    assert.ok(message.includes(`the proxy ${shown} is not supported. Expected http://`), message);
    assert.doesNotMatch(message, /can|ary/);
  }
  const socks = await write(
    'socks',
    kubeconfig('x', '', 'server: "https://127.0.0.1", proxy-url: "socks5://me:secret@own"'),
  );
  const environment = { HTTPS_PROXY, NO_PROXY: '*' };
  assert.equal(
    (await load({ kubeconfig: socks, environment })).proxyUrl,
    'socks5://me:secret@own',
    'the file wins, also over exceptions',
  );
});

test('converts a KubeConfig of client-node to the same configuration as its file', async (t) => {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const { write, load } = await machine(t);
  const users = [
    'token: abc, as: jane',
    'client-certificate: cert.pem, client-key: key.pem',
    'username: jane, password: secret',
    'exec: {apiVersion: client.authentication.k8s.io/v1, command: login, args: [a], interactiveMode: Never}',
  ];
  for (const user of users) {
    const cluster = 'server: https://web:6443, tls-server-name: web, certificate-authority: ca.crt';
    const file = await write('config', kubeconfig('web', user, cluster));
    const kubeConfig = new KubeConfig();
    kubeConfig.loadFromFile(file);
    const expected = await load({ kubeconfig: file, environment: process.env });
    assert.deepEqual(fromKubeConfig(kubeConfig), { ...expected, source: 'KubeConfig' });
  }
});

test('does not store the tokens of a KubeConfig, which has no file', async () => {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const kubeConfig = new KubeConfig();
  const config = { 'idp-issuer-url': 'https://x', 'client-id': 'a', 'refresh-token': 'abc' };
  kubeConfig.loadFromClusterAndUser(
    { name: 'web', server: 'https://10.0.0.1:6443', skipTLSVerify: false },
    { name: 'jane', authProvider: { name: 'oidc', config } },
  );
  const { credentials } = fromKubeConfig(kubeConfig);
  assert.ok(credentials.kind === 'oidc');
  assert.deepEqual([credentials.refreshToken, credentials.store], ['abc', undefined]);
});

test('converts the current context of a KubeConfig, and the service account of a Pod', async () => {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const kubeConfig = new KubeConfig();
  assert.throws(() => fromKubeConfig(kubeConfig), KubeConfigError);
  const config = { name: 'tokenFile', config: { tokenFile: '/run/token' } };
  kubeConfig.loadFromClusterAndUser(
    { name: 'web', server: 'https://10.0.0.1:6443', skipTLSVerify: false },
    { name: 'pod', authProvider: config },
  );
  const { server, credentials, namespaceIsAssumed } = fromKubeConfig(kubeConfig);
  assert.deepEqual(
    [server, credentials, namespaceIsAssumed],
    ['https://10.0.0.1:6443', { kind: 'tokenFile', path: '/run/token' }, true],
  );
});

test('refuses a user with content that is no credential, instead of anonymous requests', async (t) => {
  const { write, load } = await machine(t);
  const cases: [user: string, expected: RegExp][] = [
    ['"<<": {token: abc}', /user "a": .*unknown field "<<"/],
    ['Token: abc', /unknown field "Token"/],
    ['tokne: abc', /unknown field "tokne"/],
    ['password: abc', /password needs a username/],
    ['exec: plugin', /exec must be a map/],
    ['<<: abc', /merge key << must be a map/],
    ['<<: null, token: abc', /merge key << must be a map/],
  ];
  for (const [user, expected] of cases) {
    const path = await write('refused', kubeconfig('a', user));
    assert.match(await refusal(load({ kubeconfig: path })), expected, user);
  }
  const list = kubeconfig('a').replace('{token: abc}', '[{token: abc}]');
  const path = await write('list', list);
  assert.match(await refusal(load({ kubeconfig: path })), /user must be a map/);
  for (const user of ['', 'token: null', 'token: ""', 'exec: null', 'extensions: []', 'as: jane']) {
    const none = await write('none', kubeconfig('a', user));
    assert.deepEqual((await load({ kubeconfig: none })).credentials, { kind: 'none' }, user);
  }
});
