import { stat } from 'node:fs/promises';
import { hasErrorCode, isRecord, messageOf } from '../../util/values.ts';
import type { KubeConfigEntries } from './kube-config-decoder.ts';
import { decodeKubeConfig } from './kube-config-decoder.ts';
import { KubeConfigError } from './kube-config-error.ts';
import { readTextFile } from './read-file.ts';

/**
 * Reads one kubeconfig. YAML errors contain line and column but do not quote the text, which can contain
 * credentials.
 *
 * @returns undefined if there is no such file
 * @throws {KubeConfigError} if the file cannot be read, or is not a kubeconfig
 */
export async function readKubeConfigFile(
  file: string,
  onWarning: (warning: string) => void,
): Promise<KubeConfigEntries | undefined> {
  let text: string;
  try {
    text = await readTextFile(file);
    await warnOfReaders(file, onWarning);
  } catch (cause) {
    if (hasErrorCode(cause, 'ENOENT')) return undefined;
    const why = messageOf(cause);
    throw new KubeConfigError(
      `Cannot read the kubeconfig ${file}: ${why}. Check the path and its permissions.`,
      { cause },
    );
  }
  return decodeKubeConfig(await parseYaml(text, file), file);
}

/** Merges kubeconfigs as kubectl does: of entries with the same name, the first one is used. */
export function mergeKubeConfigs(files: readonly KubeConfigEntries[]): KubeConfigEntries {
  const firstOfEach = <T extends { readonly name: string }>(lists: readonly (readonly T[])[]) => {
    const first = new Map<string, T>();
    for (const entry of lists.flat()) if (!first.has(entry.name)) first.set(entry.name, entry);
    return [...first.values()];
  };
  return {
    currentContext: files.find((file) => file.currentContext !== '')?.currentContext ?? '',
    contexts: firstOfEach(files.map((file) => file.contexts)),
    clusters: firstOfEach(files.map((file) => file.clusters)),
    users: firstOfEach(files.map((file) => file.users)),
  };
}

/** Parses YAML. The parser is loaded on demand to save memory in Pods, which have no kubeconfig. */
async function parseYaml(text: string, file: string): Promise<unknown> {
  const { parseGoYaml } = await import('../../util/go-yaml.ts');
  try {
    return parseGoYaml(text);
  } catch (error) {
    throw new KubeConfigError(
      `The kubeconfig ${file} is malformed: ${whereOf(error)}. Correct it, or choose another with --kubeconfig.`,
    );
  }
}

/** Returns the place and the kind of an error, without the text of the file. */
function whereOf(error: unknown): string {
  if (error instanceof RangeError) return error.message;
  const { reason, mark }: { readonly reason?: unknown; readonly mark?: unknown } = isRecord(error)
    ? error
    : {};
  const what = typeof reason === 'string' ? /^[\w ,<-]*[\w<]/.exec(reason)?.[0] : undefined;
  const { line, column } = isRecord(mark) ? mark : {};
  const place = typeof line === 'number' && typeof column === 'number';
  return [place ? `line ${line + 1}, column ${column + 1}` : [], what ?? []].flat().join(': ');
}

async function warnOfReaders(file: string, onWarning: (warning: string) => void): Promise<void> {
  const { mode } = await stat(file);
  const readers = [mode & 0o040 ? 'group' : [], mode & 0o004 ? 'world' : []].flat();
  if (readers.length > 0 && process.platform !== 'win32') {
    onWarning(
      `The kubeconfig ${file} is ${readers.join('- and ')}-readable, so that others can use its credentials. Restrict it: chmod 600 ${file}`,
    );
  }
}
