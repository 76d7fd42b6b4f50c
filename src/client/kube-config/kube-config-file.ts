import { stat } from 'node:fs/promises';
import type { Pair, YAMLMap } from 'yaml';
import { hasErrorCode, isRecord, messageOf } from '../../util/values.ts';
import { readTextFile } from './read-file.ts';

/** An entry of a list in a kubeconfig, with its file. */
export interface KubeConfigEntry {
  readonly name: string;
  readonly file: string;
  /** The list element as parsed. */
  readonly raw: Readonly<Record<string, unknown>>;
}

/** The content of one kubeconfig, or of several that were merged. */
export interface KubeConfigFile {
  readonly currentContext: string | undefined;
  readonly contexts: ReadonlyMap<string, KubeConfigEntry>;
  readonly clusters: ReadonlyMap<string, KubeConfigEntry>;
  readonly users: ReadonlyMap<string, KubeConfigEntry>;
}

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
): Promise<KubeConfigFile | undefined> {
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
  const parsed = (await parseYaml(text, file)) ?? {};
  if (!isRecord(parsed) || (parsed['kind'] !== undefined && parsed['kind'] !== 'Config')) {
    throw new KubeConfigError(
      `The file ${file} is not a kubeconfig. Expected YAML with kind: Config.`,
    );
  }
  return kubeConfigOf(parsed, file);
}

/** Returns the content of a parsed kubeconfig. */
export function kubeConfigOf(
  parsed: Readonly<Record<string, unknown>>,
  file: string,
): KubeConfigFile {
  const currentContext = parsed['current-context'];
  return {
    currentContext:
      typeof currentContext === 'string' && currentContext !== '' ? currentContext : undefined,
    contexts: entriesOf(parsed['contexts'], file),
    clusters: entriesOf(parsed['clusters'], file),
    users: entriesOf(parsed['users'], file),
  };
}

/** Merges kubeconfigs as kubectl does: of entries with the same name, the first one is used. */
export function mergeKubeConfigFiles(files: readonly KubeConfigFile[]): KubeConfigFile {
  const merge = (pick: (file: KubeConfigFile) => ReadonlyMap<string, KubeConfigEntry>) => {
    const merged = new Map<string, KubeConfigEntry>();
    for (const [name, entry] of files.flatMap((file) => pick(file).entries().toArray())) {
      if (!merged.has(name)) merged.set(name, entry);
    }
    return merged;
  };
  return {
    currentContext: files.find((file) => file.currentContext !== undefined)?.currentContext,
    contexts: merge((file) => file.contexts),
    clusters: merge((file) => file.clusters),
    users: merge((file) => file.users),
  };
}

/** Parses YAML. The parser is loaded on demand to save memory in Pods, which have no kubeconfig. */
async function parseYaml(text: string, file: string): Promise<unknown> {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, visit } =
    await import('yaml');
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const [error] = document.errors;
  if (error) {
    const { line, col } = lineCounter.linePos(error.pos[0]);
    throw new KubeConfigError(
      `The kubeconfig ${file} is malformed: line ${line}, column ${col}: ${error.code}. Correct it, or choose another with --kubeconfig.`,
    );
  }
  /** Returns the maps of a merge key in the order in which they are merged: the first has precedence. */
  const sourcesOf = (value: unknown): YAMLMap[] => {
    const source = isAlias(value) ? value.resolve(document) : value;
    if (isMap(source)) return [source];
    if (!isSeq(source)) throw wrongMerge();
    return source.items.flatMap(sourcesOf).toReversed();
  };
  const wrongMerge = () =>
    new KubeConfigError(
      `The kubeconfig ${file} is malformed: the value of a merge key << must be a map or a list of maps. Correct it.`,
    );
  visit(document, {
    // As in kubectl, a merge replaces the keys before it. Maps with an anchor come before their aliases.
    Map(_key, map) {
      const isMerge = ({ key }: Pair) =>
        isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
      if (!map.items.some(isMerge)) return;
      const pairs = new Map<string, Pair>();
      for (const pair of map.items) {
        const merged = isMerge(pair) ? sourcesOf(pair.value).flatMap(({ items }) => items) : [pair];
        for (const each of merged) pairs.set(String(each.key), each);
      }
      map.items = [...pairs.values()];
    },
    Scalar(_key, scalar) {
      // Names and tokens can look like numbers, but a kubeconfig contains no numbers.
      if (typeof scalar.value === 'number' && scalar.source) scalar.value = scalar.source;
    },
  });
  try {
    return document.toJS({ maxAliasCount: 100 });
  } catch {
    throw new KubeConfigError(`The kubeconfig ${file} has too many aliases. Correct it.`);
  }
}

function entriesOf(list: unknown, file: string): Map<string, KubeConfigEntry> {
  const entries = new Map<string, KubeConfigEntry>();
  for (const raw of Array.isArray(list) ? (list as unknown[]) : []) {
    const name = isRecord(raw) ? raw['name'] : undefined;
    if (!isRecord(raw) || typeof name !== 'string' || entries.has(name)) continue;
    entries.set(name, { name, file, raw });
  }
  return entries;
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

/** There is no usable configuration. The message names where it was sought, and the next step. */
export class KubeConfigError extends Error {
  override readonly name = 'KubeConfigError';
}
