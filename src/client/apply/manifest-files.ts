import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import { openInput } from '../read-file.ts';
import type { ManifestProblem, ManifestText } from './manifest.ts';
import { ManifestError } from './manifest.ts';
import { checkOptions } from '../../util/check-options.ts';
import type { OptionNames } from '../../util/check-options.ts';
import { Client } from 'undici';
import type { Dispatcher } from 'undici';
import { dialer } from '../transport/dial.ts';
import { proxyFor } from '../kube-config/proxy-environment.ts';
import { withinTimeout } from '../within-timeout.ts';

const READ_OPTIONS: OptionNames<ReadManifestsOptions> = {
  recursive: true,
  maxBytes: true,
  stdin: true,
  environment: true,
  clock: true,
  signal: true,
  onSkipped: true,
};

/** Options of `ReadManifests`. */
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
  readonly onSkipped?: ((path: string) => void) | undefined;
}

const MAX_BYTES = 32 * 1024 * 1024;

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
  const { maxBytes = MAX_BYTES, signal, clock = systemClock } = options;
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
    if (isOtherJson(text)) options.onSkipped?.(path);
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

/**
 * The text that `chunks` are together; reading ends where the limit does.
 *
 * @throws {ManifestError} if it is longer than `maxBytes`, or is not UTF-8
 */
async function textOf(
  chunks: AsyncIterable<string | Uint8Array>,
  maxBytes: number,
  source: string,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    length += bytes.length;
    if (length > maxBytes) throw unreadable(source, `it is longer than ${maxBytes} bytes`);
    parts.push(bytes);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts, length));
  } catch {
    throw unreadable(source, 'it is not a text in UTF-8');
  }
}

function unreadable(source: string, what: string): ManifestError {
  return new ManifestError([{ message: `${source}: ${what}` }]);
}

interface DownloadOptions {
  readonly maxBytes: number;
  /** For the proxies that it names. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal?: AbortSignal | undefined;
}

const MAX_REDIRECTS = 5;
/** Bound on the whole download, redirects included, in milliseconds. */
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** Bound on a silence of the server, in milliseconds. */
const SILENCE_TIMEOUT_MS = 20_000;

/**
 * The text at an `http://` or `https://` URL. Redirects are followed, five at most, and never from
 * HTTPS to HTTP. No credentials are sent but those in the URL itself, and these to its own host only.
 *
 * @throws {ManifestError} if it cannot be had
 */
async function downloadManifest(location: string, options: DownloadOptions): Promise<ManifestText> {
  const url = URL.parse(location);
  if (!url) throw unreadable(location, 'this is no URL');
  const { clock, signal } = options;
  try {
    return await withinTimeout(
      { clock, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal },
      async (limit) => ({
        source: presentable(url),
        text: await follow(url, { ...options, signal: limit }),
      }),
    );
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ManifestError) throw error;
    throw unreadable(presentable(url), messageOf(error));
  }
}

type Hop = DownloadOptions & { readonly signal: AbortSignal };

async function follow(first: URL, options: Hop): Promise<string> {
  let url = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const found = await get(url, options);
    if (typeof found === 'string') return found;
    url = found;
  }
  const times = `more than ${MAX_REDIRECTS} times`;
  throw unreadable(presentable(first), `it leads from one address to another, ${times}`);
}

/** The text at `url`, or where it leads. */
async function get(url: URL, options: Hop): Promise<string | URL> {
  const { environment, clock, signal, maxBytes } = options;
  const client = new Client(url.origin, {
    connect: dialer({ tls: {}, proxyUrl: proxyFor(url, environment), clock, signal }),
    headersTimeout: SILENCE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
    allowH2: false,
  });
  try {
    const answer = await request(client, url, signal);
    // A body that nobody reads is torn off with its connection; who reads it is told so anyway.
    answer.body.on('error', () => undefined);
    const next = redirectOf(answer, url);
    if (next) return next;
    requireText(answer, presentable(url));
    return await textOf(answer.body, maxBytes, presentable(url));
  } finally {
    await client.destroy();
  }
}

function request(client: Client, url: URL, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
  const { username, password } = url;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return client.request({
    method: 'GET',
    path: `${url.pathname}${url.search}`,
    headers: {
      accept: 'application/yaml, application/json, text/plain, */*',
      'user-agent': 'crd-controller',
      ...(username === '' && password === ''
        ? {}
        : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
    },
    signal,
  });
}

function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(statusCode) || typeof location !== 'string') {
    return undefined;
  }
  const to = URL.parse(location, from.href);
  if (to?.protocol !== 'https:' && to?.protocol !== 'http:') {
    throw unreadable(presentable(from), 'it leads to an address that is neither http nor https');
  }
  if (from.protocol === 'https:' && to.protocol !== 'https:') {
    throw unreadable(
      presentable(from),
      'it leads from https to http, where anybody could change it',
    );
  }
  return to;
}

function requireText({ statusCode, headers }: Dispatcher.ResponseData, source: string): void {
  if (statusCode !== 200) throw unreadable(source, `the answer is HTTP status ${statusCode}`);
  if (/\bhtml\b/.test(String(headers['content-type'] ?? ''))) {
    throw unreadable(source, 'the answer is a web page; is there an address of the file itself?');
  }
}

/** Without user, password and query, which may be secrets. */
function presentable(url: URL): string {
  return `${url.origin}${url.pathname}`;
}
