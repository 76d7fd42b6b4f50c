import { dirname, isAbsolute, join } from 'node:path';
import type { PemSource } from './cluster-config.ts';
import type { ContextEntry } from './kube-config-decoder.ts';
import { KubeConfigError } from './kube-config-error.ts';

type NamedEntry = Pick<ContextEntry, 'name' | 'file'>;
type Kind = 'context' | 'cluster' | 'user';

/** Returns PEM from a file or from data in base64. As in kubectl, they exclude each other. */
export function pemSource(
  entry: NamedEntry,
  kind: Kind,
  field: string,
  file: string,
  data: string,
): PemSource | undefined {
  const wrong = wrongIn(entry, kind);
  if (file !== '' && data !== '') throw wrong(`${field} and ${field}-data exclude each other`);
  if (data !== '') {
    const pem = Buffer.from(data, 'base64').toString('utf8');
    if (!pem.includes('-----BEGIN ')) throw wrong(`${field}-data is not PEM in base64`);
    return { kind: 'data', pem };
  }
  return file === '' ? undefined : { kind: 'file', path: pathOf(entry, file) };
}

/** Resolves a path relative to the kubeconfig that contains it. */
export function pathOf({ file }: NamedEntry, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path);
}

export const NEXT_STEP = 'Correct the kubeconfig, or choose another context with --context';

/** Returns the function that creates the errors of an entry. */
export function wrongIn({ file, name }: NamedEntry, kind: Kind): (what: string) => KubeConfigError {
  return (what) =>
    new KubeConfigError(`${file}: ${kind} ${JSON.stringify(name)}: ${what}. ${NEXT_STEP}.`);
}
