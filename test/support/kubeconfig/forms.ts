/** A kubeconfig of one context, cluster and user, all named `x`, with one part changed. */
export interface Form {
  readonly name: string;
  /**
   * The credentials of the request.
   * @default 'Bearer abc'
   */
  readonly sends?: string;
  /** Fields of the cluster beside the server and the CA, as YAML. */
  readonly cluster?: string;
  /** @default the address of the server */
  readonly server?: string;
  /** @default the CA of the server */
  readonly ca?: string;
  /** Fields of the user, as YAML. */
  readonly user?: string;
  /** Fields of the context, as YAML. */
  readonly context?: string;
  /** Lines before and after the document. */
  readonly before?: string;
  readonly after?: string;
  /** The complete text. */
  readonly text?: string;
  /** Texts of several files, instead of one. */
  readonly files?: readonly string[];
}

const exec = (rest: string, version = 'v1', mode = 'interactiveMode: Never, '): string =>
  `exec: {apiVersion: client.authentication.k8s.io/${version}, ${mode}${rest}}`;

const TOKEN = 'token: abc';
const CERTIFICATE = 'client-certificate-data: $CERT, client-key-data: $KEY';
const part = (list: string, name: string, rest: string) => `${list}:\n- name: ${name}\n  ${rest}\n`;
const CLUSTER = part(
  'clusters',
  'x',
  'cluster: {server: "$SERVER", certificate-authority-data: $CA}',
);
const USER = part('users', 'x', `user: {${TOKEN}}`);
const CONTEXT = part('contexts', 'x', 'context: {cluster: x, user: x}');
const CURRENT = 'current-context: x\n';

/**
 * What kubectl uses. In all forms, `$SERVER`, `$PORT`, `$HTTP_PORT`, `$CA`, `$CERT`, `$KEY` and `$DIR` are replaced.
 */
export const ACCEPTED: readonly Form[] = [
  { name: 'token', user: TOKEN },
  { name: 'quoted numeric token', user: 'token: "007"', sends: 'Bearer 007' },
  { name: 'quoted boolean token', user: 'token: "yes"', sends: 'Bearer yes' },
  { name: 'date as a token', user: 'token: 2026-01-02', sends: 'Bearer 2026-01-02' },
  { name: 'version as a token', user: 'token: 1.2.3', sends: 'Bearer 1.2.3' },
  { name: 'sexagesimal token', user: 'token: 12:30:45', sends: 'Bearer 12:30:45' },
  { name: 'token with the tag !!str', user: 'token: !!str 123', sends: 'Bearer 123' },
  { name: 'token with spaces around', user: 'token: " abc "', sends: 'Bearer  abc' },
  { name: 'tokenFile', user: 'tokenFile: token', sends: 'Bearer from-file' },
  {
    name: 'tokenFile with an absolute path',
    user: 'tokenFile: $DIR/token',
    sends: 'Bearer from-file',
  },
  {
    name: 'tokenFile beside a token',
    user: 'tokenFile: token, token: abc',
    sends: 'Bearer from-file',
  },
  { name: 'tokenFile missing beside a token', user: 'tokenFile: none, token: abc' },
  { name: 'tokenFile empty beside a token', user: 'tokenFile: empty, token: abc' },
  { name: 'basic', user: 'username: me, password: secret', sends: 'basic me:secret' },
  { name: 'basic with a colon', user: 'username: me, password: "a:b"', sends: 'basic me:a:b' },
  { name: 'username only', user: 'username: me', sends: 'basic me:' },
  { name: 'certificate data', user: CERTIFICATE, sends: 'certificate client' },
  {
    name: 'certificate files',
    user: 'client-certificate: client.crt, client-key: client.key',
    sends: 'certificate client',
  },
  {
    name: 'certificate file and key data',
    user: 'client-certificate: client.crt, client-key-data: $KEY',
    sends: 'certificate client',
  },
  {
    name: 'certificate data and key file',
    user: 'client-certificate-data: $CERT, client-key: client.key',
    sends: 'certificate client',
  },
  { name: 'key without a certificate beside a token', user: `client-key-data: $KEY, ${TOKEN}` },
  { name: 'key file missing without a certificate', user: `client-key: none, ${TOKEN}` },
  {
    name: 'certificate and token',
    user: `${CERTIFICATE}, ${TOKEN}`,
    sends: 'certificate client, Bearer abc',
  },
  {
    name: 'certificate and tokenFile',
    user: `${CERTIFICATE}, tokenFile: token`,
    sends: 'certificate client, Bearer from-file',
  },
  {
    name: 'certificate and password',
    user: `${CERTIFICATE}, password: secret`,
    sends: 'certificate client',
  },
  {
    name: 'tokenFile and password',
    user: 'tokenFile: token, password: secret',
    sends: 'Bearer from-file',
  },
  {
    name: 'certificate and basic',
    user: `${CERTIFICATE}, username: me, password: secret`,
    sends: 'certificate client, basic me:secret',
  },
  {
    name: 'certificate data empty',
    user: `client-certificate-data: "", client-key-data: "", ${TOKEN}`,
  },
  {
    name: 'certificate data null',
    user: `client-certificate-data: null, client-key-data: null, ${TOKEN}`,
  },
  { name: 'as', user: `${TOKEN}, as: alice`, sends: 'Bearer abc, user alice' },
  {
    name: 'as, all fields',
    user: `${TOKEN}, as: alice, as-uid: u1, as-groups: [a, b], as-user-extra: {Scope: [c, d]}`,
    sends: 'Bearer abc, extra-scope c, d, group a, b, uid u1, user alice',
  },
  { name: 'as-groups empty without as', user: `${TOKEN}, as-groups: []` },
  { name: 'as-user-extra empty without as', user: `${TOKEN}, as-user-extra: {}` },
  {
    name: 'as-groups with null',
    user: `${TOKEN}, as: alice, as-groups: [null, a]`,
    sends: 'Bearer abc, group , a, user alice',
  },
  {
    name: 'as-user-extra with a slash',
    user: `${TOKEN}, as: alice, as-user-extra: {"a.b/C d": [e]}`,
    sends: 'Bearer abc, extra-a.b%2fc%20d e, user alice',
  },
  { name: 'exec v1', user: exec('command: ./json'), sends: 'Bearer plugin' },
  { name: 'exec v1beta1', user: exec('command: ./beta', 'v1beta1', ''), sends: 'Bearer plugin' },
  {
    name: 'exec IfAvailable',
    user: exec('command: ./json', 'v1', 'interactiveMode: IfAvailable, '),
    sends: 'Bearer plugin',
  },
  { name: 'exec that prints YAML', user: exec('command: ./yaml'), sends: 'Bearer plugin' },
  {
    name: 'exec that prints an unknown field',
    user: exec('command: ./unknown'),
    sends: 'Bearer plugin',
  },
  {
    name: 'exec that prints a certificate',
    user: exec('command: ./certificate'),
    sends: 'certificate client',
  },
  {
    name: 'exec with arguments and environment',
    user: exec('command: ./echo, args: [a, "1"], env: [{name: B, value: c}]'),
    sends: 'Bearer args-a 1-env-c',
  },
  {
    name: 'exec with null lists',
    user: exec('command: ./echo, args: null, env: null'),
    sends: 'Bearer args--env-',
  },
  { name: 'exec with an absolute path', user: exec('command: $DIR/json'), sends: 'Bearer plugin' },
  { name: 'exec in a parent folder', user: exec('command: ../$NAME/json'), sends: 'Bearer plugin' },
  { name: 'exec null', user: `exec: null, ${TOKEN}` },
  { name: 'exec and token', user: `${exec('command: ./fails')}, ${TOKEN}` },
  {
    name: 'exec and basic',
    user: `${exec('command: ./fails')}, username: me, password: secret`,
    sends: 'basic me:secret',
  },
  {
    name: 'exec and certificate',
    user: `${exec('command: ./fails')}, ${CERTIFICATE}`,
    sends: 'certificate client',
  },
  { name: 'auth-provider null', user: `auth-provider: null, ${TOKEN}` },
  {
    name: 'auth-provider oidc',
    user: 'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: $JWT}}',
    sends: 'Bearer JWT',
  },
  {
    name: 'auth-provider oidc and token',
    user: `auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: $JWT}}, ${TOKEN}`,
  },
  {
    name: 'auth-provider oidc and certificate',
    user: `auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: $JWT}}, ${CERTIFICATE}`,
    sends: 'certificate client, Bearer JWT',
  },
  {
    name: 'server with a path',
    server: 'https://127.0.0.1:$PORT/a/b/',
    sends: 'Bearer abc, at /a/b',
  },
  { name: 'server with a query', server: '"https://127.0.0.1:$PORT?a=b"' },
  {
    name: 'server with a path and a query',
    server: '"https://127.0.0.1:$PORT/a?b=c"',
    sends: 'Bearer abc, at /a',
  },
  { name: 'server with a fragment', server: 'https://127.0.0.1:$PORT#a' },
  { name: 'server with a trailing slash', server: 'https://127.0.0.1:$PORT/' },
  { name: 'server with an upper-case scheme', server: 'HTTPS://127.0.0.1:$PORT' },
  {
    name: 'server without a scheme, plain',
    server: '127.0.0.1:$HTTP_PORT',
    user: '',
    sends: 'anonymous',
  },
  {
    name: 'server without a scheme, a name',
    server: 'localhost:$HTTP_PORT',
    user: '',
    sends: 'anonymous',
  },
  { name: 'server over HTTP', server: 'http://127.0.0.1:$HTTP_PORT', user: '', sends: 'anonymous' },
  { name: 'CA file', ca: 'certificate-authority: ca.crt' },
  { name: 'CA data with line breaks', ca: 'certificate-authority-data: "$BROKEN_CA"' },
  { name: 'insecure', ca: 'insecure-skip-tls-verify: true' },
  { name: 'insecure as a word of YAML 1.1', ca: 'insecure-skip-tls-verify: on' },
  { name: 'insecure null', ca: 'insecure-skip-tls-verify: null, certificate-authority-data: $CA' },
  { name: 'tls-server-name', cluster: 'tls-server-name: other.example' },
  { name: 'disable-compression', cluster: 'disable-compression: true' },
  { name: 'proxy-url empty', cluster: 'proxy-url: ""' },
  { name: 'unknown field of a cluster', cluster: 'certificate-authorities: x' },
  { name: 'extensions', cluster: 'extensions: [{name: a, extension: {b: 1}}]' },
  { name: 'extensions with equal names', cluster: 'extensions: [{name: a}, {name: a}]' },
  { name: 'namespace', context: 'cluster: x, user: x, namespace: web' },
  { name: 'namespace that is no DNS label', context: 'cluster: x, user: x, namespace: Web_1' },
  {
    name: 'quoted numeric names',
    text: (CLUSTER + USER + CONTEXT + CURRENT).replace(/(?<= )x\b|(?<=: )x\b/g, '"1"'),
  },
  { name: 'empty names', text: (CLUSTER + USER + CONTEXT + CURRENT).replace(/(?<= )x\b/g, '""') },
  {
    name: 'name with spaces',
    text: (CLUSTER + USER + CONTEXT + CURRENT).replace(/(?<= )x\b/g, '"a b: c"'),
  },
  {
    name: 'JSON',
    text: '{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"clusters":[{"name":"x","cluster":{"server":"$SERVER","certificate-authority-data":"$CA"}}],"users":[{"name":"x","user":{"token":"abc"}}]}',
  },
  { name: 'byte order mark', before: '\uFEFF' },
  { name: 'document start', before: '---\n' },
  { name: 'two documents', after: '---\nkind: Pod\n' },
  { name: 'second document is malformed', after: '---\na: [\n' },
  { name: 'first document is a comment', before: '# a\n---\n' },
  { name: 'document end', after: '...\n' },
  { name: 'without kind and apiVersion', text: CLUSTER + USER + CONTEXT + CURRENT },
  {
    name: 'kind and apiVersion empty',
    text: `apiVersion: ""\nkind: ""\n${CLUSTER}${USER}${CONTEXT}${CURRENT}`,
  },
  {
    name: 'kind null',
    text: `apiVersion: null\nkind: null\n${CLUSTER}${USER}${CONTEXT}${CURRENT}`,
  },
  { name: 'unknown field', before: 'other: {a: [1]}\n' },
  { name: 'duplicate key of the document', after: CURRENT },
  { name: 'duplicate key of a user', user: 'token: old, token: abc' },
  { name: 'a user that is null', text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- null\n` },
  {
    name: 'another user with wrong fields',
    text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- name: z\n  user: {token: a, username: b, exec: {}}\n`,
  },
  {
    name: 'another cluster without a server',
    text: `${USER}${CONTEXT}${CURRENT}${CLUSTER}- name: z\n  cluster: {}\n`,
  },
  {
    name: 'another context of nothing',
    text: `${CLUSTER}${USER}${CURRENT}${CONTEXT}- name: z\n  context: {cluster: none, user: none}\n`,
  },
  { name: 'anchor and alias', before: 'common: &a abc\n', user: 'token: *a' },
  { name: 'merge key', before: 'common: &a {token: abc}\n', user: '<<: *a' },
  {
    name: 'merge key after a key',
    before: 'common: &a {token: abc}\n',
    user: 'token: old, <<: *a',
  },
  {
    name: 'merge key before a key',
    before: 'common: &a {token: old}\n',
    user: '<<: *a, token: abc',
  },
  {
    name: 'merge of a list',
    before: 'common: [&a {token: abc}, &b {token: old, as: jane}]\n',
    user: '<<: [*a, *b]',
    sends: 'Bearer abc, user jane',
  },
  { name: 'unknown tag', user: 'token: !secret abc' },
  {
    name: 'block scalar',
    text: `${CLUSTER}${CONTEXT}${CURRENT}users:\n- name: x\n  user:\n    token: |-\n      abc\n`,
  },
  {
    name: 'folded certificate',
    text: `${USER}${CONTEXT}${CURRENT}clusters:\n- name: x\n  cluster:\n    server: $SERVER\n    certificate-authority-data: |\n      $CA\n`,
  },
  { name: 'carriage returns', text: (CLUSTER + USER + CONTEXT + CURRENT).replaceAll('\n', '\r\n') },
  { name: 'several files', files: [CLUSTER, USER, CONTEXT + CURRENT] },
  {
    name: 'the first name wins',
    files: [USER, part('users', 'x', 'user: {token: old}') + CLUSTER + CONTEXT + CURRENT],
  },
  {
    name: 'the first current context wins',
    files: [CURRENT, `${CLUSTER}${USER}${CONTEXT}current-context: z\n`],
  },
  { name: 'an empty second file', files: [CLUSTER + USER + CONTEXT + CURRENT, ''] },
];

/** What kubectl refuses, and the server of the form gets no request. */
export const REFUSED: readonly Form[] = [
  { name: 'numeric token', user: 'token: 007' },
  { name: 'boolean token', user: 'token: yes' },
  { name: 'float as a token', user: 'token: 1.5' },
  { name: 'underscores in a numeric token', user: 'token: 1_000' },
  { name: 'hexadecimal token', user: 'token: 0xabc' },
  { name: 'exponent token', user: 'token: 12e3' },
  { name: 'token as a list', user: 'token: [abc]' },
  { name: 'token in upper case', user: 'Token: abc' },
  { name: 'token misspelt', user: 'tokne: abc' },
  { name: 'tokenFile missing', user: 'tokenFile: none' },
  { name: 'tokenFile empty', user: 'tokenFile: empty' },
  { name: 'token-file of client-node', user: 'token-file: token' },
  { name: 'password only', user: 'password: secret' },
  { name: 'numeric password', user: 'username: me, password: 12' },
  { name: 'token and basic', user: `${TOKEN}, username: me, password: secret` },
  { name: 'token and username', user: `${TOKEN}, username: me` },
  { name: 'token and password', user: `${TOKEN}, password: secret` },
  { name: 'tokenFile and basic', user: 'tokenFile: token, username: me, password: secret' },
  { name: 'tokenFile missing and basic', user: 'tokenFile: none, username: me, password: secret' },
  { name: 'certificate without a key', user: 'client-certificate-data: $CERT' },
  { name: 'key without a certificate', user: 'client-key-data: $KEY' },
  {
    name: 'certificate without a key beside a token',
    user: `client-certificate-data: $CERT, ${TOKEN}`,
  },
  { name: 'certificate file missing', user: 'client-certificate: none, client-key: client.key' },
  { name: 'key file missing', user: 'client-certificate: client.crt, client-key: none' },
  { name: 'certificate file beside data', user: `client-certificate: client.crt, ${CERTIFICATE}` },
  {
    name: 'certificate file missing beside data',
    user: `client-certificate: none, ${CERTIFICATE}`,
  },
  { name: 'key file beside data', user: `client-key: client.key, ${CERTIFICATE}` },
  { name: 'key file missing beside data', user: `client-key: none, ${CERTIFICATE}` },
  {
    name: 'certificate that is not base64',
    user: 'client-certificate-data: "%", client-key-data: $KEY',
  },
  {
    name: 'certificate that is not PEM',
    user: 'client-certificate-data: YWJj, client-key-data: $KEY',
  },
  {
    name: 'certificate of another key',
    user: 'client-certificate-data: $CERT, client-key-data: $OTHER_KEY',
  },
  { name: 'as-groups without as', user: `${TOKEN}, as-groups: [a]` },
  { name: 'as-uid without as', user: `${TOKEN}, as-uid: u1` },
  { name: 'as-user-extra without as', user: `${TOKEN}, as-user-extra: {a: [b]}` },
  { name: 'as-groups as a string', user: `${TOKEN}, as: alice, as-groups: a` },
  { name: 'as-groups with a number', user: `${TOKEN}, as: alice, as-groups: [1]` },
  { name: 'as-user-extra as a list', user: `${TOKEN}, as: alice, as-user-extra: [a]` },
  { name: 'as-user-extra with a string', user: `${TOKEN}, as: alice, as-user-extra: {a: b}` },
  { name: 'as numeric', user: `${TOKEN}, as: 1` },
  { name: 'exec v1beta1 that prints v1', user: exec('command: ./json', 'v1beta1', '') },
  { name: 'exec v1alpha1', user: exec('command: ./json', 'v1alpha1', '') },
  { name: 'exec with an unknown version', user: exec('command: ./json', 'v2') },
  { name: 'exec without apiVersion', user: 'exec: {command: ./json, interactiveMode: Never}' },
  { name: 'exec without interactiveMode', user: exec('command: ./json', 'v1', '') },
  {
    name: 'exec with a wrong interactiveMode',
    user: exec('command: ./json', 'v1', 'interactiveMode: never, '),
  },
  {
    name: 'exec v1beta1 with a wrong interactiveMode',
    user: exec('command: ./beta', 'v1beta1', 'interactiveMode: x, '),
  },
  { name: 'exec Always', user: exec('command: ./json', 'v1', 'interactiveMode: Always, ') },
  { name: 'exec that prints two documents', user: exec('command: ./two') },
  { name: 'exec that prints a numeric token', user: exec('command: ./number') },
  { name: 'exec that prints another kind', user: exec('command: ./kind') },
  { name: 'exec that prints no status', user: exec('command: ./nothing') },
  { name: 'exec that prints half of a key pair', user: exec('command: ./half') },
  { name: 'exec that prints an invalid expiry', user: exec('command: ./expiry') },
  { name: 'exec that prints a date as expiry', user: exec('command: ./date') },
  { name: 'exec that prints a certificate of another key', user: exec('command: ./mismatch') },
  { name: 'exec that fails', user: exec('command: ./fails') },
  { name: 'exec that is missing', user: exec('command: ./none') },
  { name: 'exec without command', user: exec('args: [a]') },
  { name: 'exec with numeric arguments', user: exec('command: ./echo, args: [1]') },
  { name: 'exec with a nameless variable', user: exec('command: ./echo, env: [{value: c}]') },
  {
    name: 'exec with a numeric variable',
    user: exec('command: ./echo, env: [{name: A, value: 1}]'),
  },
  {
    name: 'exec with provideClusterInfo as text',
    user: exec('command: ./json, provideClusterInfo: "true"'),
  },
  { name: 'exec that is not in the PATH', user: exec('command: json') },
  { name: 'exec empty', user: 'exec: {}' },
  { name: 'exec as a string', user: 'exec: plugin' },
  { name: 'exec as a list', user: 'exec: [plugin]' },
  { name: 'exec invalid and token', user: `exec: {command: ./json}, ${TOKEN}` },
  {
    name: 'exec and auth-provider',
    user: `${exec('command: ./json')}, auth-provider: {name: oidc, config: {}}`,
  },
  { name: 'auth-provider gcp', user: 'auth-provider: {name: gcp}' },
  { name: 'auth-provider azure', user: 'auth-provider: {name: azure, config: {}}' },
  { name: 'auth-provider unknown', user: 'auth-provider: {name: other}' },
  { name: 'auth-provider gcp and token', user: `auth-provider: {name: gcp}, ${TOKEN}` },
  { name: 'auth-provider as a string', user: 'auth-provider: oidc' },
  {
    name: 'auth-provider oidc without issuer',
    user: 'auth-provider: {name: oidc, config: {client-id: a, id-token: $JWT}}',
  },
  {
    name: 'auth-provider oidc without client',
    user: 'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", id-token: $JWT}}',
  },
  {
    name: 'auth-provider oidc with a token that is no JWT',
    user: 'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: abc}}',
  },
  {
    name: 'auth-provider oidc with an expired token',
    user: 'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: $OLD_JWT}}',
  },
  {
    name: 'auth-provider oidc with a numeric client',
    user: 'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: 1, id-token: $JWT}}',
  },
  { name: 'server with a trailing space', server: '"https://127.0.0.1:$PORT "' },
  { name: 'server with a leading space', server: '" https://127.0.0.1:$PORT"' },
  { name: 'server with a trailing line break', server: '"https://127.0.0.1:$PORT\\n"' },
  { name: 'server with another scheme', server: 'ftp://127.0.0.1:$PORT' },
  { name: 'server without a host', server: 'https://' },
  { name: 'server without a host, with a port', server: '"https://:$PORT"' },
  { name: 'server with a wrong port', server: 'https://127.0.0.1:x' },
  { name: 'server with one slash', server: 'https:/127.0.0.1:$PORT' },
  { name: 'server with backslashes', server: '"https:\\\\\\\\127.0.0.1:$PORT"' },
  { name: 'server as a number', server: '6443' },
  { name: 'server empty', server: '""' },
  { name: 'server null', server: 'null' },
  { name: 'server with a user', server: 'https://me:secret@127.0.0.1:$PORT', user: '' },
  { name: 'cluster empty', text: USER + CONTEXT + CURRENT + part('clusters', 'x', 'cluster: {}') },
  { name: 'cluster null', text: USER + CONTEXT + CURRENT + part('clusters', 'x', 'cluster: null') },
  { name: 'CA file missing', ca: 'certificate-authority: none' },
  {
    name: 'CA file beside data',
    ca: 'certificate-authority: ca.crt, certificate-authority-data: $CA',
  },
  {
    name: 'CA file missing beside data',
    ca: 'certificate-authority: none, certificate-authority-data: $CA',
  },
  { name: 'CA file empty', ca: 'certificate-authority: empty' },
  { name: 'CA data unpadded', ca: 'certificate-authority-data: $UNPADDED_CA' },
  { name: 'CA data with spaces', ca: 'certificate-authority-data: "$SPACED_CA"' },
  { name: 'CA data in the URL alphabet', ca: 'certificate-authority-data: _-_-' },
  { name: 'CA data that is not base64', ca: 'certificate-authority-data: "%%%"' },
  { name: 'CA data that is not PEM', ca: 'certificate-authority-data: YWJj' },
  { name: 'CA data as plain PEM', ca: 'certificate-authority-data: "-----BEGIN CERTIFICATE-----"' },
  { name: 'insecure as text', ca: 'insecure-skip-tls-verify: "true"' },
  { name: 'insecure as a number', ca: 'insecure-skip-tls-verify: 1' },
  {
    name: 'insecure with CA',
    ca: 'insecure-skip-tls-verify: true, certificate-authority-data: $CA',
  },
  { name: 'tls-server-name of another server', cluster: 'tls-server-name: wrong.example' },
  { name: 'disable-compression as text', cluster: 'disable-compression: "true"' },
  { name: 'proxy-url with another scheme', cluster: 'proxy-url: "ftp://127.0.0.1:1"' },
  { name: 'proxy-url without a scheme', cluster: 'proxy-url: "127.0.0.1:1"' },
  { name: 'proxy-url of socks5h', cluster: 'proxy-url: "socks5h://127.0.0.1:1"' },
  { name: 'proxy-url that cannot be parsed', cluster: 'proxy-url: "http://["' },
  { name: 'extensions as a map', cluster: 'extensions: {a: {}}' },
  { name: 'namespace numeric', context: 'cluster: x, user: x, namespace: 1' },
  { name: 'context with an unknown user', context: 'cluster: x, user: z' },
  { name: 'context without a cluster', context: 'user: x' },
  { name: 'context with an unknown cluster', context: 'cluster: z, user: x' },
  { name: 'context null', text: CLUSTER + USER + CURRENT + part('contexts', 'x', 'context: null') },
  { name: 'no current context', text: CLUSTER + USER + CONTEXT },
  { name: 'unknown current context', text: `${CLUSTER}${USER}${CONTEXT}current-context: z\n` },
  { name: 'current context null', text: `${CLUSTER}${USER}${CONTEXT}current-context: null\n` },
  { name: 'numeric names', text: (CLUSTER + USER + CONTEXT + CURRENT).replace(/\bx\b(?!y)/g, '1') },
  {
    name: 'word of YAML 1.1 as a name',
    text: (CLUSTER + USER + CONTEXT + CURRENT).replace(/(?<= )x\b/g, 'on'),
  },
  { name: 'empty file', text: '' },
  { name: 'comment only', text: '# nothing\n' },
  { name: 'scalar', text: 'text\n' },
  { name: 'list', text: '- a\n' },
  {
    name: 'tab for indentation',
    text: `${CLUSTER}${USER}${CONTEXT}${CURRENT}preferences:\n\tcolors: true\n`,
  },
  { name: 'first document is empty', before: '---\n---\n' },
  { name: 'kind Pod', text: `kind: Pod\n${CLUSTER}${USER}${CONTEXT}${CURRENT}` },
  {
    name: 'apiVersion v2',
    text: `apiVersion: v2\nkind: Config\n${CLUSTER}${USER}${CONTEXT}${CURRENT}`,
  },
  {
    name: 'apiVersion with a group',
    text: `apiVersion: a/v1\nkind: Config\n${CLUSTER}${USER}${CONTEXT}${CURRENT}`,
  },
  {
    name: 'apiVersion numeric',
    text: `apiVersion: 1\nkind: Config\n${CLUSTER}${USER}${CONTEXT}${CURRENT}`,
  },
  { name: 'preferences wrong', before: 'preferences: {colors: "x"}\n' },
  { name: 'top-level extensions wrong', before: 'extensions: {}\n' },
  {
    name: 'duplicate name of a user',
    text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- name: x\n  user: {token: other}\n`,
  },
  {
    name: 'duplicate name of a cluster',
    text: `${USER}${CONTEXT}${CURRENT}${CLUSTER}- name: x\n  cluster: {server: "https://x"}\n`,
  },
  {
    name: 'duplicate name of a context',
    text: `${CLUSTER}${USER}${CURRENT}${CONTEXT}- name: x\n  context: {}\n`,
  },
  { name: 'lists null', text: `${CURRENT}clusters: null\nusers: null\ncontexts: null\n` },
  { name: 'users as a map', text: `${CLUSTER}${CONTEXT}${CURRENT}users: {x: {token: abc}}\n` },
  { name: 'a user that is a string', text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- text\n` },
  {
    name: 'two users that are null',
    text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- null\n- null\n`,
  },
  {
    name: 'user as a list',
    text: `${CLUSTER}${CONTEXT}${CURRENT}${part('users', 'x', 'user: [{token: abc}]')}`,
  },
  {
    name: 'another user with a wrong type',
    text: `${CLUSTER}${CONTEXT}${CURRENT}${USER}- name: z\n  user: {token: 1}\n`,
  },
  {
    name: 'another cluster with wrong base64',
    text: `${USER}${CONTEXT}${CURRENT}${CLUSTER}- name: z\n  cluster: {certificate-authority-data: "%"}\n`,
  },
  { name: 'merge of a scalar', user: '<<: abc' },
  { name: 'merge of null', user: `<<: null, ${TOKEN}` },
  { name: 'quoted merge key', user: '"<<": {token: abc}' },
  { name: 'unknown alias', user: 'token: *none' },
  { name: 'flow list not closed', user: 'token: [' },
  {
    name: 'a wrong second user of a name',
    files: [USER + CLUSTER + CONTEXT + CURRENT, part('users', 'x', 'user: {token: 1}')],
  },
  { name: 'a malformed second file', files: [CLUSTER + USER + CONTEXT + CURRENT, 'a: [\n'] },
];

/** kubectl asks for a user name; other programs on client-go send anonymous requests, as we do. */
export const ANONYMOUS: readonly Form[] = [
  { name: 'empty user', user: '', sends: 'anonymous' },
  {
    name: 'user null',
    text: CLUSTER + CONTEXT + CURRENT + part('users', 'x', 'user: null'),
    sends: 'anonymous',
  },
  { name: 'token null', user: 'token: null', sends: 'anonymous' },
  { name: 'as without credentials', user: 'as: alice', sends: 'anonymous, user alice' },
  { name: 'context without a user', context: 'cluster: x', sends: 'anonymous' },
];

const PARTS: readonly string[] = [
  'token: abc',
  'tokenFile: token',
  'tokenFile: none',
  'username: me',
  'password: secret',
  'client-certificate-data: $CERT',
  'client-certificate: client.crt',
  'client-key-data: $KEY',
  'client-key: client.key',
  'as: alice',
  'as-groups: [a]',
  'as-uid: u1',
  exec('command: ./json'),
  'auth-provider: {name: oidc, config: {idp-issuer-url: "https://x", client-id: a, id-token: $JWT}}',
  'extensions: []',
  'other: 1',
];

/** Returns users with several fields: a different random selection in each run, named by it. */
export function combinations(count: number): readonly Form[] {
  return Array.from({ length: count }, () => {
    const user = PARTS.filter(() => Math.random() < 0.2).join(', ');
    return { name: user, user };
  });
}
