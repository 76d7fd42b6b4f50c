import { Client } from 'undici';
import type { Dispatcher } from 'undici';
import type { Clock } from '../util/clock.ts';
import { messageOf } from '../util/message-of.ts';
import { dialer } from './dial.ts';
import type { ManifestText } from './manifest.ts';
import { ManifestError } from './manifest.ts';
import { textOf, unreadable } from './manifest-text.ts';
import { proxyFor } from './proxy-environment.ts';
import { withinTimeout } from './within-timeout.ts';

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
  { maxBytes, environment, clock, signal }: DownloadOptions,
): Promise<ManifestText> {
  const given = URL.parse(location);
  if (!given) throw unreadable(location, 'this is no URL');
  const source = presentable(given);
  try {
    return await withinTimeout({ clock, timeoutMs: DOWNLOAD_TIMEOUT_MS, signal }, async (limit) => {
      let url = given;
      for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
        const client = clientOf(url, environment, clock, limit);
        try {
          const answer = await request(client, url, limit);
          const next = redirectOf(answer, url);
          if (next) {
            answer.body.destroy();
            url = next;
          } else {
            requireText(answer, source);
            return { source, text: await textOf(answer.body, maxBytes, source) };
          }
        } finally {
          await client.destroy();
        }
      }
      throw unreadable(
        source,
        `it leads from one address to another, more than ${MOST_REDIRECTS} times`,
      );
    });
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof ManifestError) throw error;
    throw unreadable(source, messageOf(error));
  }
}

function clientOf(
  url: URL,
  environment: DownloadOptions['environment'],
  clock: DownloadOptions['clock'],
  signal: AbortSignal,
): Client {
  const proxyUrl = proxyFor(url, environment);
  return new Client(url.origin, {
    connect: dialer({ tls: {}, proxyUrl, clock, signal }),
    headersTimeout: SILENCE_TIMEOUT_MS,
    bodyTimeout: SILENCE_TIMEOUT_MS,
    allowH2: false,
  });
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
  const isKnown = to?.protocol === 'https:' || to?.protocol === 'http:';
  if (!to || !isKnown || (from.protocol === 'https:' && to.protocol !== 'https:')) {
    throw unreadable(presentable(from), 'it leads to an address that is not https');
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
