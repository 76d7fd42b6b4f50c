import type { Cluster, Context, User } from '@kubernetes/client-node';
import { isRecord } from '../../util/values.ts';
import { KubeConfigError } from './kube-config-error.ts';

/** The entries of one kubeconfig, or of several that were merged, as client-node's `KubeConfig` holds them. */
export interface KubeConfigEntries {
  readonly currentContext: string;
  readonly contexts: readonly ContextEntry[];
  readonly clusters: readonly ClusterEntry[];
  readonly users: readonly UserEntry[];
}

/** An entry of a list in a kubeconfig. Absent texts are empty, as in Go. */
interface Entry {
  readonly name: string;
  /** The file that contains it. */
  readonly file: string;
}

export interface ContextEntry extends Context, Entry {
  readonly name: string;
}

export interface ClusterEntry extends Cluster, Entry {
  readonly name: string;
  /** Settings of the cluster for exec plugins. */
  readonly pluginSettings: unknown;
}

export interface UserEntry extends Omit<User, 'exec' | 'authProvider'>, Entry {
  readonly name: string;
  readonly certData: string;
  readonly certFile: string;
  readonly keyData: string;
  readonly keyFile: string;
  readonly token: string;
  readonly tokenFile: string;
  readonly username: string;
  readonly password: string;
  readonly impersonateUser: string;
  readonly impersonateUid: string;
  readonly impersonateGroups: readonly string[];
  readonly impersonateExtra: ReadonlyMap<string, readonly string[]>;
  readonly exec: ExecFields | undefined;
  readonly authProvider: AuthProviderFields | undefined;
  /** A field that client-go does not know. */
  readonly unknownField: string | undefined;
}

export interface ExecFields {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: string;
}

export interface AuthProviderFields {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
}

/**
 * Decodes a parsed kubeconfig as client-go does: each field has a type, also those of entries that are not used, and null
 * is the zero value. Unknown fields are ignored.
 *
 * @throws {KubeConfigError} with the first field that has another type
 */
export function decodeKubeConfig(parsed: unknown, file: string): KubeConfigEntries {
  const wrong = (what: string) => new KubeConfigError(`${file}: ${what}. Correct the kubeconfig.`);
  if (!isRecord(parsed ?? {})) {
    throw new KubeConfigError(
      `The file ${file} is not a kubeconfig. Expected YAML with kind: Config.`,
    );
  }
  const root = new Fields(parsed, '', wrong);
  const [kind, apiVersion] = [root.text('kind'), root.text('apiVersion')];
  if ((kind || 'Config') !== 'Config') {
    throw new KubeConfigError(
      `The file ${file} is not a kubeconfig. Expected YAML with kind: Config.`,
    );
  }
  if ((apiVersion || 'v1') !== 'v1') {
    throw wrong(`apiVersion ${JSON.stringify(apiVersion)} is not supported: expected v1`);
  }
  const preferences = root.object('preferences');
  preferences.flag('colors');
  preferences.extensions();
  root.extensions();
  const decode = <T>(list: string, kind: string, read: (fields: Fields, entry: Entry) => T) => {
    const names = new Set<string>();
    return root.list(list, (element, at) => {
      const name = new Fields(element, at, wrong).text('name');
      const shown = `${kind} ${JSON.stringify(name)}`;
      if (names.has(name)) throw wrong(`there are two entries ${shown}`);
      names.add(name);
      const fields = new Fields(element, '', (what) => wrong(`${shown}: ${what}`)).object(kind, '');
      return read(fields, { name, file });
    });
  };
  return {
    currentContext: root.text('current-context'),
    contexts: decode('contexts', 'context', contextOf),
    clusters: decode('clusters', 'cluster', clusterOf),
    users: decode('users', 'user', userOf),
  };
}

function contextOf(fields: Fields, entry: Entry): ContextEntry {
  fields.extensions();
  return {
    ...entry,
    cluster: fields.text('cluster'),
    user: fields.text('user'),
    namespace: fields.text('namespace'),
  };
}

function clusterOf(fields: Fields, entry: Entry): ClusterEntry {
  fields.flag('disable-compression');
  return {
    ...entry,
    server: fields.text('server'),
    tlsServerName: fields.text('tls-server-name'),
    skipTLSVerify: fields.flag('insecure-skip-tls-verify'),
    caFile: fields.text('certificate-authority'),
    caData: fields.base64('certificate-authority-data'),
    proxyUrl: fields.text('proxy-url'),
    pluginSettings: fields.extensions().get('client.authentication.k8s.io/exec'),
  };
}

/** The fields of a user, as in client-go. */
const USER_FIELDS: ReadonlySet<string> = new Set(
  `client-certificate client-certificate-data client-key client-key-data token tokenFile username password
auth-provider exec extensions as as-uid as-groups as-user-extra`.split(/\s+/),
);

function userOf(fields: Fields, entry: Entry): UserEntry {
  fields.extensions();
  const exec = fields.optional('exec');
  const authProvider = fields.optional('auth-provider');
  return {
    ...entry,
    certFile: fields.text('client-certificate'),
    certData: fields.base64('client-certificate-data'),
    keyFile: fields.text('client-key'),
    keyData: fields.base64('client-key-data'),
    token: fields.text('token'),
    tokenFile: fields.text('tokenFile'),
    username: fields.text('username'),
    password: fields.text('password'),
    impersonateUser: fields.text('as'),
    impersonateUid: fields.text('as-uid'),
    impersonateGroups: fields.texts('as-groups'),
    impersonateExtra: fields.map('as-user-extra', (extra, key) => extra.texts(key)),
    exec: exec && execOf(exec),
    authProvider: authProvider && {
      name: authProvider.text('name'),
      config: Object.fromEntries(authProvider.map('config', (config, key) => config.text(key))),
    },
    unknownField: fields.names().find((name) => !USER_FIELDS.has(name)),
  };
}

function execOf(exec: Fields): ExecFields {
  return {
    apiVersion: exec.text('apiVersion'),
    command: exec.text('command'),
    args: exec.texts('args'),
    env: exec.objects('env', (variable) => ({
      name: variable.text('name'),
      value: variable.text('value'),
    })),
    installHint: exec.text('installHint'),
    provideClusterInfo: exec.flag('provideClusterInfo'),
    interactiveMode: exec.text('interactiveMode'),
  };
}

/** Reads the fields of a map. Its errors contain the path. */
class Fields {
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #at: string;
  readonly #wrong: (what: string) => KubeConfigError;

  constructor(value: unknown, at: string, wrong: (what: string) => KubeConfigError) {
    const values = value ?? {};
    if (!isRecord(values)) throw wrong(`${at} must be a map`);
    this.#values = values;
    this.#at = at;
    this.#wrong = wrong;
  }

  names(): readonly string[] {
    return Object.keys(this.#values);
  }

  text(name: string): string {
    return this.#textOf(this.#valueOf(name), this.#path(name));
  }

  flag(name: string): boolean {
    const value = this.#valueOf(name) ?? false;
    if (typeof value === 'boolean') return value;
    throw this.#wrong(`${this.#path(name)} must be true or false`);
  }

  /** Returns a text in base64 without line breaks. */
  base64(name: string): string {
    const data = this.text(name).replace(/[\r\n]/g, '');
    // As in Go: padded, in the standard alphabet.
    if (/^[A-Za-z0-9+/]*={0,2}$/.test(data) && data.length % 4 === 0) return data;
    throw this.#wrong(`${this.#path(name)} is not base64`);
  }

  texts(name: string): readonly string[] {
    return this.list(name, (item, at) => this.#textOf(item, at));
  }

  list<T>(name: string, read: (item: unknown, at: string) => T): readonly T[] {
    const value = this.#valueOf(name) ?? [];
    if (!Array.isArray(value)) throw this.#wrong(`${this.#path(name)} must be a list`);
    return value.map((item: unknown, index) => read(item, `${this.#path(name)}[${index}]`));
  }

  /** Returns the map `name`; empty if it is absent. `at` is its path in errors about its fields. */
  object(name: string, at: string = this.#path(name)): Fields {
    const value = this.#valueOf(name) ?? {};
    if (!isRecord(value)) throw this.#wrong(`${this.#path(name)} must be a map`);
    return new Fields(value, at, this.#wrong);
  }

  optional(name: string): Fields | undefined {
    return (this.#valueOf(name) ?? undefined) === undefined ? undefined : this.object(name);
  }

  objects<T>(name: string, read: (fields: Fields) => T): readonly T[] {
    return this.list(name, (item, at) => read(new Fields(item, at, this.#wrong)));
  }

  map<T>(name: string, read: (fields: Fields, key: string) => T): ReadonlyMap<string, T> {
    const fields = this.object(name);
    return new Map(fields.names().map((key) => [key, read(fields, key)]));
  }

  /** Returns the extensions by name. */
  extensions(): ReadonlyMap<string, unknown> {
    return new Map(
      this.objects('extensions', (fields) => [fields.text('name'), fields.#valueOf('extension')]),
    );
  }

  #textOf(value: unknown, path: string): string {
    const text = value ?? '';
    if (typeof text === 'string') return text;
    const hint = typeof text === 'object' ? '' : ': set it in quotes';
    throw this.#wrong(`${path} must be a string${hint}`);
  }

  #valueOf(name: string): unknown {
    return Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
  }

  #path(name: string): string {
    return this.#at === '' ? name : `${this.#at}.${name}`;
  }
}
