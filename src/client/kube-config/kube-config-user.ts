import { resolve } from 'node:path';
import type {
  CredentialSource,
  ExecApiVersion,
  HeaderSource,
  Impersonation,
} from './cluster-config.ts';
import { pathOf, pemSource, wrongIn } from './kube-config-entry.ts';
import type {
  AuthProviderFields,
  ClusterEntry,
  ExecFields,
  UserEntry,
} from './kube-config-decoder.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Returns the credentials of a user. As in client-go, a certificate is used beside a header, a header of the file has
 * precedence over that of a provider, and an exec plugin runs only without other credentials.
 *
 * @throws {KubeConfigError} if fields are missing or exclude each other, so that no request is anonymous by mistake
 */
export function credentialsOfUser(
  user: UserEntry,
  cluster: ClusterEntry,
  {
    environment,
    storesTokens,
  }: { readonly environment: Environment; readonly storesTokens: boolean },
): CredentialSource {
  const wrong = wrongIn(user, 'user');
  const { certFile, certData, keyFile, keyData } = user;
  // As in client-go, a key without a certificate is ignored.
  const certificate = pemSource(user, 'user', 'client-certificate', certFile, certData);
  const key = certificate && pemSource(user, 'user', 'client-key', keyFile, keyData);
  if (certificate && !key) throw wrong('client-certificate needs a client-key');
  const exec = user.exec && execOf(user, user.exec, cluster, environment);
  if (exec && user.authProvider) throw wrong('exec and auth-provider exclude each other');
  const provider = user.authProvider && oidcOf(user, user.authProvider, environment, storesTokens);
  const header = headerOf(user) ?? provider;
  if (certificate && key) {
    return { kind: 'clientCertificate', certificate, key, ...(header && { header }) };
  }
  if (header) return header;
  if (exec?.needsTerminal) {
    throw wrong(
      `exec: ${exec.source.command} requires a terminal (interactiveMode: Always), which a program in the background does not have`,
    );
  }
  if (exec) return exec.source;
  if (user.password !== '') throw wrong('password needs a username');
  if (keyFile !== '' || keyData !== '') throw wrong('client-key needs a client-certificate');
  if (user.unknownField !== undefined) {
    const shown = JSON.stringify(user.unknownField.slice(0, 100));
    throw wrong(`there are no credentials, but the unknown field ${shown}`);
  }
  return { kind: 'none' };
}

/** Returns the credentials for the Authorization header that the file contains. */
function headerOf(user: UserEntry): HeaderSource | undefined {
  const { token, tokenFile, username, password } = user;
  const wrong = wrongIn(user, 'user');
  if (token && (username || password)) throw wrong('token and username exclude each other');
  if (tokenFile && username) throw wrong('tokenFile and username exclude each other');
  if (tokenFile) {
    return { kind: 'tokenFile', path: pathOf(user, tokenFile), ...(token && { token }) };
  }
  if (token) return { kind: 'token', token };
  return username ? { kind: 'basic', username, password } : undefined;
}

export function impersonationOfUser(user: UserEntry): {
  readonly impersonation?: Impersonation;
} {
  const { impersonateUser, impersonateUid, impersonateGroups, impersonateExtra } = user;
  if (impersonateUser !== '') {
    return {
      impersonation: {
        user: impersonateUser,
        ...(impersonateUid && { uid: impersonateUid }),
        groups: impersonateGroups,
        extra: impersonateExtra,
      },
    };
  }
  if (impersonateUid !== '' || impersonateGroups.length > 0 || impersonateExtra.size > 0) {
    throw wrongIn(user, 'user')('as-uid, as-groups and as-user-extra require as');
  }
  return {};
}

const INTERACTIVE_MODES: ReadonlySet<string> = new Set(['Never', 'IfAvailable', 'Always']);

interface Exec {
  readonly source: Extract<CredentialSource, { readonly kind: 'exec' }>;
  readonly needsTerminal: boolean;
}

function execOf(
  user: UserEntry,
  exec: ExecFields,
  cluster: ClusterEntry,
  environment: Environment,
): Exec {
  const wrong = wrongIn(user, 'user');
  const { command, args, env, installHint, provideClusterInfo } = exec;
  if (command === '') throw wrong('exec.command is missing');
  const apiVersion = execVersionOf(exec.apiVersion);
  if (apiVersion === undefined) {
    throw wrong(
      `exec.apiVersion ${exec.apiVersion || '(none)'} is not supported. Expected client.authentication.k8s.io/v1 or v1beta1: update the plugin and generate the kubeconfig again`,
    );
  }
  const isOptional = apiVersion === 'client.authentication.k8s.io/v1beta1';
  const mode = exec.interactiveMode || (isOptional ? 'IfAvailable' : '');
  if (!INTERACTIVE_MODES.has(mode)) {
    throw wrong(
      mode === ''
        ? 'exec.interactiveMode is missing. Expected Never, IfAvailable or Always'
        : `exec.interactiveMode ${JSON.stringify(mode)} is not supported. Expected Never, IfAvailable or Always`,
    );
  }
  if (env.some(({ name }) => name === '')) throw wrong('exec.env contains an entry without name');
  const variables = env.map(({ name, value }) => [name, value] as const);
  const { pluginSettings } = cluster;
  return {
    needsTerminal: mode === 'Always',
    source: {
      kind: 'exec',
      // A bare name is looked up in PATH; a path is relative to the kubeconfig.
      command: /[/\\]/.test(command) ? pathOf(user, command) : command,
      args,
      environment: { ...definedOnly(environment), ...Object.fromEntries(variables) },
      apiVersion,
      provideClusterInfo,
      ...(installHint && { installHint }),
      ...(pluginSettings !== undefined && { clusterSettings: pluginSettings }),
    },
  };
}

function execVersionOf(version: string): ExecApiVersion | undefined {
  switch (version) {
    case 'client.authentication.k8s.io/v1':
    case 'client.authentication.k8s.io/v1beta1':
      return version;
    default:
      return undefined;
  }
}

function definedOnly(environment: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    ),
  );
}

/** The only provider that client-go still has. */
function oidcOf(
  user: UserEntry,
  { name, config }: AuthProviderFields,
  environment: Environment,
  storesTokens: boolean,
): HeaderSource {
  const wrong = wrongIn(user, 'user');
  if (name !== 'oidc') {
    throw wrong(
      `auth-provider ${JSON.stringify(name)} is not supported, as in client-go. Use an exec plugin instead (gke-gcloud-auth-plugin, kubelogin)`,
    );
  }
  const text = (field: string) => config[field] ?? '';
  const [issuer, clientId, clientSecret] = [
    text('idp-issuer-url'),
    text('client-id'),
    text('client-secret'),
  ];
  const [idToken, refreshToken] = [text('id-token'), text('refresh-token')];
  if (issuer === '') throw wrong('auth-provider.config.idp-issuer-url is missing');
  if (clientId === '') throw wrong('auth-provider.config.client-id is missing');
  const caData = text('idp-certificate-authority-data');
  const caFile = text('idp-certificate-authority');
  const ca = caData
    ? pemSource(user, 'user', 'idp-certificate-authority', '', caData)
    : caFile && ({ kind: 'file', path: resolve(caFile) } as const);
  return {
    kind: 'oidc',
    issuer,
    clientId,
    ...(clientSecret && { clientSecret }),
    ...(idToken && { idToken }),
    ...(refreshToken && { refreshToken }),
    ...(ca && { ca }),
    environment,
    ...(storesTokens && { store: { file: user.file, user: user.name } }),
  };
}
