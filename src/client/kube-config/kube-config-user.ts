import type { User } from '@kubernetes/client-node/dist/config_types.js';
import { newUsers } from '@kubernetes/client-node/dist/config_types.js';
import type { CredentialSource, ExecApiVersion, Impersonation } from './cluster-config.ts';
import { isRecord } from '../../util/values.ts';
import type { Fields } from './kube-config-entry.ts';
import { EntryReader, parse } from './kube-config-entry.ts';
import type { KubeConfigEntry } from './kube-config-file.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a user of a kubeconfig: what proves who they are, and whom they act as. */
export class UserReader extends EntryReader {
  readonly #user: User;

  constructor(entry: KubeConfigEntry) {
    super(entry, 'user');
    this.#user = parse<User>(newUsers, entry, 'user');
  }

  /** `clusterSettings` are what the cluster keeps for an exec plugin. */
  credentials(environment: Environment, clusterSettings: unknown): CredentialSource {
    if (this.#user.authProvider) {
      const { name } = this.#user.authProvider as Fields;
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
    const { exec } = this.fields;
    return isRecord(exec) ? this.#exec(exec, environment, clusterSettings) : { kind: 'none' };
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
      throw this.wrong(`exec: ${command} wants a terminal (interactiveMode), a daemon has none`);
    }
    const installHint = this.text('installHint', exec);
    return {
      kind: 'exec',
      // A bare name is looked up in the PATH; a path starts from the file that has it.
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
          `exec.apiVersion ${version ?? '(none)'} is not supported. Expected client.authentication.k8s.io/v1 or v1beta1: update the plugin and write the kubeconfig anew`,
        );
    }
  }

  #variables(exec: Fields): Record<string, string> {
    const list = Array.isArray(exec['env']) ? (exec['env'] as unknown[]) : [];
    return Object.fromEntries(
      list.map((item) => {
        const variable = isRecord(item) ? item : {};
        const name = this.text('name', variable);
        if (name === undefined) throw this.wrong('exec.env has an entry without name');
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
