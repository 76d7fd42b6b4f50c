import type {
  ClusterConfig,
  CredentialSource,
  ExecApiVersion,
  Impersonation,
  PemSource,
} from './cluster-config.ts';
import { KubeConfigError } from './kube-config-file.ts';
import type { KubeConfigEntry, KubeConfigFile } from './kube-config-file.ts';
import { dirname, isAbsolute, join } from 'node:path';
import { isRecord } from '../../util/values.ts';

export interface ContextChoice {
  /** Name of the kubeconfig in messages: one file, or several. */
  readonly source: string;
  /** Name of the context; undefined if the kubeconfig has no current context. */
  readonly context: string | undefined;
  /** Environment for exec plugins. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Returns the configuration of one context of a kubeconfig.
 *
 * @throws {KubeConfigError} with the name of the entry that is missing or wrong
 */
export function configOfContext(kubeconfig: KubeConfigFile, choice: ContextChoice): ClusterConfig {
  const { source, context: contextName } = choice;
  if (!contextName) {
    throw new KubeConfigError(
      `${source}: no current context is set. Choose one with --context${known(kubeconfig.contexts)}.`,
    );
  }
  const contextEntry = entry(kubeconfig.contexts, 'context', contextName, source);
  const context = new EntryReader(contextEntry, 'context');
  const clusterEntry = entry(kubeconfig.clusters, 'cluster', context.required('cluster'), source);
  const cluster = new ClusterReader(clusterEntry);
  const userName = context.text('user');
  const userEntry = userName ? entry(kubeconfig.users, 'user', userName, source) : undefined;
  const user = userEntry && new UserReader(userEntry);
  const namespace = context.text('namespace');
  return {
    source,
    ...cluster.read(),
    credentials: user?.credentials(choice.environment, cluster.pluginSettings()) ?? {
      kind: 'none',
    },
    ...user?.impersonation(),
    ...(namespace ? { namespace } : { namespace: 'default', namespaceIsAssumed: true }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads the fields of one entry. Its errors contain the entry's name and file. */
class EntryReader {
  protected readonly entry: KubeConfigEntry;
  readonly #kind: 'context' | 'cluster' | 'user';
  /** The value of `context`, `cluster` or `user`. */
  protected readonly fields: Fields;

  constructor(entry: KubeConfigEntry, kind: 'context' | 'cluster' | 'user') {
    const fields = entry.raw[kind] ?? {};
    this.entry = entry;
    this.#kind = kind;
    if (!isRecord(fields)) throw this.wrong(`${kind} must be a map`);
    this.fields = fields;
  }

  wrong(what: string): KubeConfigError {
    const { file, name } = this.entry;
    return new KubeConfigError(
      `${file}: ${this.#kind} ${JSON.stringify(name)}: ${what}. Correct the kubeconfig, or choose another context with --context.`,
    );
  }

  /** Returns a field that must be a string that is not empty. */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined) throw this.wrong(`${this.#kind}.${name} is missing`);
    return value;
  }

  /** Returns a field that must be a string if it is present. */
  text(name: string, fields: Fields = this.fields): string | undefined {
    const value = fields[name] ?? undefined;
    if (value === undefined || value === '') return undefined;
    if (typeof value !== 'string') throw this.wrong(`${name} must be a string`);
    return value;
  }

  protected texts(name: string, fields: Fields = this.fields): readonly string[] {
    const value = fields[name] ?? [];
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    throw this.wrong(`${name} must be a list of strings`);
  }

  /** Returns `<name>-data` in base64, or the file `<name>`; data has precedence, as in kubectl. */
  protected pem(name: string): PemSource | undefined {
    const data = this.text(`${name}-data`);
    const file = this.text(name);
    if (data !== undefined) {
      const pem = Buffer.from(data, 'base64').toString('utf8');
      if (!pem.includes('-----BEGIN ')) throw this.wrong(`${name}-data is not PEM in base64`);
      return { kind: 'data', pem };
    }
    return file === undefined ? undefined : { kind: 'file', path: this.path(file) };
  }

  /** Resolves a path relative to the kubeconfig that contains it. */
  protected path(path: string): string {
    return isAbsolute(path) ? path : join(dirname(this.entry.file), path);
  }
}

class ClusterReader extends EntryReader {
  constructor(entry: KubeConfigEntry) {
    super(entry, 'cluster');
  }

  read(): Pick<
    ClusterConfig,
    'server' | 'ca' | 'tlsServerName' | 'insecureSkipTlsVerify' | 'proxyUrl'
  > {
    const ca = this.pem('certificate-authority');
    const tlsServerName = this.text('tls-server-name');
    const proxyUrl = this.text('proxy-url');
    const insecureSkipTlsVerify = this.fields['insecure-skip-tls-verify'] === true;
    if (ca && insecureSkipTlsVerify) {
      throw this.wrong('certificate-authority and insecure-skip-tls-verify exclude each other');
    }
    return {
      server: this.required('server').replace(/\/$/, ''),
      insecureSkipTlsVerify,
      ...(ca === undefined ? {} : { ca }),
      ...(tlsServerName === undefined ? {} : { tlsServerName }),
      ...(proxyUrl === undefined ? {} : { proxyUrl }),
    };
  }

  /** Returns the cluster's settings for exec plugins. */
  pluginSettings(): unknown {
    const { extensions } = this.fields;
    const found = (Array.isArray(extensions) ? (extensions as unknown[]) : []).find(
      (extension) =>
        isRecord(extension) && extension['name'] === 'client.authentication.k8s.io/exec',
    );
    return isRecord(found) ? found['extension'] : undefined;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The fields of a user, as in client-go. */
const USER_FIELDS: ReadonlySet<string> = new Set(
  `client-certificate client-certificate-data client-key client-key-data token tokenFile username password
auth-provider exec extensions as as-uid as-groups as-user-extra`.split(/\s+/),
);

/** Reads a user of a kubeconfig: credentials and impersonation. */
class UserReader extends EntryReader {
  constructor(entry: KubeConfigEntry) {
    super(entry, 'user');
  }

  /** Returns the credentials; `clusterSettings` are the cluster's settings for exec plugins. */
  credentials(environment: Environment, clusterSettings: unknown): CredentialSource {
    const { 'auth-provider': provider } = this.fields;
    if (provider) {
      const name = isRecord(provider) ? provider['name'] : undefined;
      throw this.wrong(
        `auth-provider ${JSON.stringify(name)} is no longer supported by Kubernetes. Use an exec plugin instead (gke-gcloud-auth-plugin, kubelogin, kubectl oidc-login)`,
      );
    }
    const certificate = this.pem('client-certificate');
    const key = this.pem('client-key');
    if (certificate && key) return { kind: 'clientCertificate', certificate, key };
    if (certificate) throw this.wrong('client-certificate needs a client-key');
    const tokenFile = this.text('tokenFile');
    if (tokenFile) return { kind: 'tokenFile', path: this.path(tokenFile) };
    const token = this.text('token');
    if (token) return { kind: 'token', token };
    const username = this.text('username');
    if (username) return { kind: 'basic', username, password: this.text('password') ?? '' };
    const exec = this.fields['exec'] ?? undefined;
    if (isRecord(exec)) return this.#exec(exec, environment, clusterSettings);
    if (exec !== undefined) throw this.wrong('exec must be a map');
    this.#requireNone();
    return { kind: 'none' };
  }

  /** Requires that a user without credentials has no field that could be one, so that no request is anonymous by mistake. */
  #requireNone(): void {
    if (this.text('password')) throw this.wrong('password needs a username');
    if (this.pem('client-key')) throw this.wrong('client-key needs a client-certificate');
    const unknown = Object.keys(this.fields).find((name) => !USER_FIELDS.has(name));
    if (unknown === undefined) return;
    const shown = JSON.stringify(unknown.slice(0, 100));
    throw this.wrong(`there are no credentials, but the unknown field ${shown}`);
  }

  impersonation(): { readonly impersonation?: Impersonation } {
    const user = this.text('as');
    if (user === undefined) return {};
    const uid = this.text('as-uid');
    const extra = this.fields['as-user-extra'];
    const keys = isRecord(extra) ? Object.keys(extra) : [];
    return {
      impersonation: {
        user,
        ...(uid === undefined ? {} : { uid }),
        groups: this.texts('as-groups'),
        extra: new Map(
          keys.map((key) => [key, this.texts(key, isRecord(extra) ? extra : {})] as const),
        ),
      },
    };
  }

  #exec(exec: Fields, environment: Environment, clusterSettings: unknown): CredentialSource {
    const command = this.text('command', exec);
    if (command === undefined) throw this.wrong('exec.command is missing');
    if (exec['interactiveMode'] === 'Always') {
      throw this.wrong(
        `exec: ${command} requires a terminal (interactiveMode: Always), which a daemon does not have`,
      );
    }
    const installHint = this.text('installHint', exec);
    return {
      kind: 'exec',
      // A bare name is looked up in PATH; a path is relative to the kubeconfig.
      command: /[/\\]/.test(command) ? this.path(command) : command,
      args: this.texts('args', exec),
      environment: { ...definedOnly(environment), ...this.#variables(exec) },
      apiVersion: this.#execVersion(exec),
      provideClusterInfo: exec['provideClusterInfo'] === true,
      ...(installHint === undefined ? {} : { installHint }),
      ...(clusterSettings === undefined ? {} : { clusterSettings }),
    };
  }

  #execVersion(exec: Fields): ExecApiVersion {
    const version = this.text('apiVersion', exec);
    switch (version) {
      case 'client.authentication.k8s.io/v1':
      case 'client.authentication.k8s.io/v1beta1':
        return version;
      default:
        throw this.wrong(
          `exec.apiVersion ${version ?? '(none)'} is not supported. Expected client.authentication.k8s.io/v1 or v1beta1: update the plugin and generate the kubeconfig again`,
        );
    }
  }

  #variables(exec: Fields): Record<string, string> {
    const list = Array.isArray(exec['env']) ? (exec['env'] as unknown[]) : [];
    return Object.fromEntries(
      list.map((item) => {
        const variable = isRecord(item) ? item : {};
        const name = this.text('name', variable);
        if (name === undefined) throw this.wrong('exec.env contains an entry without name');
        return [name, this.text('value', variable) ?? ''] as const;
      }),
    );
  }
}

function definedOnly(environment: Environment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as const],
    ),
  );
}

function entry(
  entries: ReadonlyMap<string, KubeConfigEntry>,
  kind: string,
  name: string,
  source: string,
): KubeConfigEntry {
  const found = entries.get(name);
  if (found) return found;
  throw new KubeConfigError(
    `${source}: there is no ${kind} ${JSON.stringify(name)}${known(entries)}. Correct the kubeconfig, or choose another context with --context.`,
  );
}

function known(entries: ReadonlyMap<string, KubeConfigEntry>): string {
  const names = [...entries.keys()].slice(0, 10);
  return names.length === 0 ? ' (it has none)' : ` (it has ${names.join(', ')})`;
}
