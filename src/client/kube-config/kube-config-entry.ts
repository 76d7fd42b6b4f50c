import { dirname, isAbsolute, join } from 'node:path';
import type { PemSource } from './cluster-config.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import { KubeConfigError } from './kube-config-error.ts';
import type { KubeConfigEntry } from './kube-config-file.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Reads fields of one entry, and names the entry and its file in what it throws. */
export class EntryReader {
  protected readonly entry: KubeConfigEntry;
  readonly #kind: 'cluster' | 'user';
  /** What stands under `cluster:` or `user:`. */
  protected readonly fields: Fields;

  constructor(entry: KubeConfigEntry, kind: 'cluster' | 'user') {
    const fields = entry.raw[kind];
    this.entry = entry;
    this.#kind = kind;
    this.fields = isRecord(fields) ? fields : {};
  }

  wrong(what: string): KubeConfigError {
    return wrongEntry(this.entry, this.#kind, what);
  }

  /** A field that must be text if it is there. */
  protected text(name: string, fields: Fields = this.fields): string | undefined {
    const value = fields[name] ?? undefined;
    if (value === undefined || value === '') return undefined;
    if (typeof value !== 'string') throw this.wrong(`${name} must be text`);
    return value;
  }

  protected texts(name: string, fields: Fields = this.fields): readonly string[] {
    const value = fields[name] ?? [];
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    throw this.wrong(`${name} must be a list of texts`);
  }

  /** `<name>-data` in base64, or the file `<name>`; data wins, as in kubectl. */
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

  /** Relative paths start from the file that has them. */
  protected path(path: string): string {
    return isAbsolute(path) ? path : join(dirname(this.entry.file), path);
  }
}

/** Lets client-node read one entry, and says where the entry was if it does not like it. */
export function parse<T>(
  read: (list: unknown[]) => T[],
  found: KubeConfigEntry,
  kind: 'context' | 'cluster' | 'user',
): T {
  try {
    const [parsed] = read([found.raw]);
    if (parsed) return parsed;
  } catch (error) {
    // `clusters[0].cluster.server is missing`: there is one entry, and it has a name.
    const words = messageOf(error);
    throw wrongEntry(found, kind, words.replace(/^\w+\[0\]\./, ''));
  }
  throw wrongEntry(found, kind, 'is empty');
}

function wrongEntry(found: KubeConfigEntry, kind: string, what: string): KubeConfigError {
  return new KubeConfigError(
    `${found.file}: ${kind} ${JSON.stringify(found.name)}: ${what}. Correct the kubeconfig, or choose another context by --context.`,
  );
}
