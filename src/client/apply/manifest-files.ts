import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import { openInput } from '../read-file.ts';
import { downloadManifest } from './manifest-download.ts';
import type { ManifestProblem, ManifestText } from './manifest.ts';
import { ManifestError } from './manifest.ts';
import { textOf, unreadable } from './manifest-text.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';

const READ_OPTIONS: OptionNames<ReadManifestsOptions> = {
  recursive: true,
  maxBytes: true,
  stdin: true,
  environment: true,
  clock: true,
  signal: true,
  onPassedOver: true,
};

export interface ReadManifestsOptions {
  /**
   * Look into the folders of a folder too.
   * @default false
   */
  readonly recursive?: boolean | undefined;
  /**
   * Bound on each file, URL or standard input, in bytes.
   * @default 33554432 (32 MiB)
   */
  readonly maxBytes?: number | undefined;
  /**
   * What `-` stands for.
   * @default the process's standard input
   */
  readonly stdin?: Readable | undefined;
  /**
   * HTTPS_PROXY, HTTP_PROXY and NO_PROXY are looked up here.
   * @default process.env
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** A `.json` of a folder that is the settings of some other program is passed over, and told. */
  readonly onPassedOver?: ((path: string) => void) | undefined;
}

const MOST_BYTES = 32 * 1024 * 1024;

/** Files of a folder that may have manifests. */
const MANIFEST = /\.(?:ya?ml|json)$/;

/**
 * The texts at `locations`: files, folders (their `.yaml`, `.yml` and `.json` files by name, without
 * hidden ones and `node_modules`), `http://` and `https://` URLs, and `-` for standard input.
 *
 * @throws {ManifestError} naming each that cannot be read
 */
export async function readManifests(
  locations: readonly string[],
  options: ReadManifestsOptions = {},
): Promise<ManifestText[]> {
  checkOptions(options, READ_OPTIONS, 'readManifests');
  const problems: ManifestProblem[] = [];
  const texts: ManifestText[] = [];
  if (locations.filter((location) => location === '-').length > 1) {
    problems.push({ message: 'standard input (-) can be read only once' });
  }
  for (const location of locations) {
    options.signal?.throwIfAborted();
    try {
      for (const text of await textsAt(location, options)) texts.push(text);
    } catch (error) {
      options.signal?.throwIfAborted();
      for (const problem of problemsOf(error, location)) problems.push(problem);
    }
  }
  if (problems.length > 0) throw new ManifestError(problems);
  return texts;
}

async function textsAt(
  location: string,
  options: ReadManifestsOptions,
): Promise<readonly ManifestText[]> {
  const { maxBytes = MOST_BYTES, signal, clock = systemClock } = options;
  if (location === '-') {
    const source = 'standard input';
    const stdin = options.stdin ?? process.stdin;
    if (signal) addAbortSignal(signal, stdin);
    return [{ source, text: await textOf(stdin, maxBytes, source) }];
  }
  if (/^https?:\/\//i.test(location)) {
    const { environment = process.env } = options;
    return [await downloadManifest(location, { maxBytes, environment, clock, signal })];
  }
  const read = async (source: string): Promise<ManifestText> => ({
    source,
    text: await textOf(await openInput(source, signal), maxBytes, source),
  });
  if (!(await stat(location)).isDirectory()) return [await read(location)];
  const paths = await manifestsIn(location, options.recursive ?? false);
  if (paths.length === 0) {
    const where = options.recursive
      ? 'in this folder and those in it'
      : 'in this folder; with --recursive those in it are looked into';
    throw unreadable(location, `there is no .yaml, .yml or .json file ${where}`);
  }
  const texts: ManifestText[] = [];
  for (const path of paths) {
    const text = await read(path);
    if (isOtherJson(text)) options.onPassedOver?.(path);
    else texts.push(text);
  }
  return texts;
}

/** Links to files are followed, and to folders not: those could lead round in circles. */
async function manifestsIn(folder: string, recursive: boolean): Promise<string[]> {
  const entries = (await readdir(folder, { withFileTypes: true })).toSorted(
    ({ name: a }, { name: b }) => (a < b ? -1 : 1),
  );
  const paths: string[] = [];
  for (const entry of entries) {
    if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      const below = recursive ? await manifestsIn(path, recursive) : [];
      for (const manifest of below) paths.push(manifest);
    } else if (MANIFEST.test(entry.name) && (await stat(path)).isFile()) {
      paths.push(path);
    }
  }
  return paths;
}

/** `package.json`, `tsconfig.json`: lies in a folder with manifests and does not look like one. */
function isOtherJson({ source, text }: ManifestText): boolean {
  return source.endsWith('.json') && !/"(?:apiVersion|kind)"\s*:/.test(text);
}

function problemsOf(error: unknown, location: string): readonly ManifestProblem[] {
  if (error instanceof ManifestError) return error.problems;
  const isMissing = hasErrorCode(error, 'ENOENT');
  const what = isMissing ? 'there is no such file or folder' : messageOf(error);
  return [{ message: `${location}: ${what}` }];
}
