import { Client } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '../../util/clock.ts';
import { messageOf } from '../../util/values.ts';
import { dialer } from '../transport/dial.ts';
import type { ManifestText } from './manifest.ts';
import { ManifestError } from './manifest.ts';
import { textOf, unreadable } from './manifest-text.ts';
import { proxyFor } from '../kube-config/proxy-environment.ts';
import { withinTimeout } from '../within-timeout.ts';

export interface DownloadOptions {
  readonly maxBytes: number;
  /** For the proxies that it names. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Pick<Clock, 'after'>;
  readonly signal?: AbortSignal | undefined;
}

const MOST_REDIRECTS = 5;
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
export async function downloadManifest(
  location: string,
  options: DownloadOptions,
): Promise<ManifestText> {
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
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const found = await get(url, options);
    if (typeof found === 'string') return found;
    url = found;
  }
  const times = `more than ${MOST_REDIRECTS} times`;
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
