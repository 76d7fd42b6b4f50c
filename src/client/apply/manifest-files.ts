import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { addAbortSignal } from 'node:stream';
import type { Readable } from 'node:stream';
import type { Clock } from '../../util/clock.ts';
import { systemClock } from '../../util/clock.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import { openInput } from '../kube-config/read-file.ts';
import type { ManifestProblem, ManifestText } from './manifest.ts';
import { ManifestError } from './manifest.ts';
import { dial } from '../transport/dial.ts';
import { exchange } from '../transport/exchange.ts';
import { headerLines } from '../transport/http1-connection.ts';
import { Http1Pool } from '../transport/http1-pool.ts';
import type { HttpResponse } from '../../util/http.ts';
import { proxyFor } from '../kube-config/proxy-environment.ts';
import { withinTimeout } from '../../util/within-timeout.ts';

/** Options of {@link readManifests}. */
export interface ReadManifestsOptions {
  /**
   * Reads folders recursively.
   * @default false
   */
  readonly recursive?: boolean | undefined;
  /**
   * Maximum size of each file, URL or standard input, in bytes.
   * @default 33554432 (32 MiB)
   */
  readonly maxBytes?: number | undefined;
  /**
   * Stream for the location `-`.
   * @default the process's standard input
   */
  readonly stdin?: Readable | undefined;
  /**
   * Environment with HTTPS_PROXY, HTTP_PROXY and NO_PROXY.
   * @default process.env
   */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** @default the machine's clock */
  readonly clock?: Pick<Clock, 'after'> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called for each file of a folder that is skipped because it is not a manifest, with the reason. */
  readonly onSkipped?: ((path: string, reason: string) => void) | undefined;
}

const MAX_BYTES = 32 * 1024 * 1024;

/** Names of files in a folder that can contain manifests. */
const MANIFEST = /\.(?:ya?ml|json)$/;

/**
 * Reads manifests from files, folders, `http://` and `https://` URLs, and standard input (`-`). In a folder, it
 * reads `.yaml`, `.yml` and `.json` files in the order of their names, except hidden ones and `node_modules`.
 *
 * @throws {ManifestError} with every location that cannot be read
 */
export async function readManifests(
  locations: readonly string[],
  options: ReadManifestsOptions = {},
): Promise<ManifestText[]> {
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
      ? 'in this folder and its subfolders'
      : 'in this folder; use --recursive to read its subfolders';
    throw unreadable(location, `there is no .yaml, .yml or .json file ${where}`);
  }
  const texts: ManifestText[] = [];
  for (const path of paths) {
    const text = await read(path);
    const reason = reasonToSkip(text);
    if (reason === undefined) texts.push(text);
    else options.onSkipped?.(path, reason);
  }
  return texts;
}

/** Lists manifest files. It follows links to files, but not to folders, which could form cycles. */
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

/** Names of the files that kustomize reads. */
const KUSTOMIZATION = /^kustomization\.ya?ml$/;

/** Returns why a file of a folder is not a manifest, such as `package.json`; undefined for a manifest. */
function reasonToSkip({ source, text }: ManifestText): string | undefined {
  if (KUSTOMIZATION.test(basename(source))) {
    return 'it is a kustomization, for kubectl apply -k';
  }
  const isOtherJson = source.endsWith('.json') && !/"(?:apiVersion|kind)"\s*:/.test(text);
  return isOtherJson ? 'it has neither apiVersion nor kind' : undefined;
}

function problemsOf(error: unknown, location: string): readonly ManifestProblem[] {
  if (error instanceof ManifestError) return error.problems;
  const isMissing = hasErrorCode(error, 'ENOENT');
  const what = isMissing ? 'there is no such file or folder' : messageOf(error);
  return [{ message: `${location}: ${what}` }];
}

/**
 * Reads a stream of text; stops at the limit.
 *
 * @throws {ManifestError} if the text is longer than `maxBytes`, or is not UTF-8
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
    throw unreadable(source, 'it is not UTF-8 text');
  }
}

function unreadable(source: string, what: string): ManifestError {
  return new ManifestError([{ message: `${source}: ${what}` }]);
}

interface DownloadOptions {
  readonly maxBytes: number;
  /** Environment with the proxy settings. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal?: AbortSignal | undefined;
}

const MAX_REDIRECTS = 5;
/** Timeout of the complete download, including redirects, in milliseconds. */
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** Timeout of a download on which nothing arrives, in milliseconds. */
const IDLE_TIMEOUT_MS = 20_000;

/**
 * Downloads the text at an `http://` or `https://` URL. It follows at most five redirects, and none from HTTPS to
 * HTTP. Credentials are sent only if the URL contains them, and only to the URL's host.
 *
 * @throws {ManifestError} if the download fails
 */
async function downloadManifest(location: string, options: DownloadOptions): Promise<ManifestText> {
  const url = URL.parse(location);
  if (!url) throw unreadable(location, 'it is not a URL');
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
  throw unreadable(presentable(first), `it redirects more than ${MAX_REDIRECTS} times`);
}

/** Returns the text at `url`, or the target of its redirect. */
async function get(url: URL, options: Hop): Promise<string | URL> {
  const { environment, clock, signal, maxBytes } = options;
  const proxyUrl = proxyFor(url, environment);
  const pool = new Http1Pool({
    host: url.host,
    dial: (closed) =>
      dial(url, { tls: {}, proxyUrl, clock, signal: AbortSignal.any([signal, closed]) }),
    headersTimeoutMs: IDLE_TIMEOUT_MS,
    bodyTimeoutMs: IDLE_TIMEOUT_MS,
  });
  try {
    const response = await request(pool, url, signal);
    const next = redirectOf(response, url);
    if (next) return next;
    requireText(response, presentable(url));
    return await textOf(response.body, maxBytes, presentable(url));
  } finally {
    pool.destroy();
  }
}

function request(pool: Http1Pool, url: URL, signal: AbortSignal): Promise<HttpResponse> {
  const { username, password } = url;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const headers = {
    accept: 'application/yaml, application/json, text/plain, */*',
    'user-agent': 'crd-controller',
    ...(username === '' && password === ''
      ? {}
      : { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }),
  };
  return exchange({
    pool,
    request: {
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headerLines: headerLines(Object.entries(headers)),
    },
    signal,
    explain: (error) => (signal.aborted ? signal.reason : error),
  });
}

function redirectOf({ status, headers }: HttpResponse, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 303, 307, 308].includes(status) || location === undefined) return undefined;
  const to = URL.parse(location, from.href);
  if (to?.protocol !== 'https:' && to?.protocol !== 'http:') {
    throw unreadable(
      presentable(from),
      'it redirects to an address that is neither http nor https',
    );
  }
  if (from.protocol === 'https:' && to.protocol !== 'https:') {
    throw unreadable(
      presentable(from),
      'it redirects from https to http, which can be tampered with',
    );
  }
  return to;
}

function requireText({ status, headers }: HttpResponse, source: string): void {
  if (status !== 200) throw unreadable(source, `the server responded with HTTP status ${status}`);
  if (/\bhtml\b/.test(headers['content-type'] ?? '')) {
    throw unreadable(source, 'the response is a web page; use the address of the file itself');
  }
}

/** Returns the URL without user, password and query, which can be secrets. */
function presentable(url: URL): string {
  return `${url.origin}${url.pathname}`;
}
