import { posix } from 'node:path';
import { escapePath, parseGoUrl, unescapePath } from '../../util/go-url.ts';
import { numberIn, objectIn, textIn } from '../builtin/fields.ts';
import type { JsonObject } from '../schema/json-value.ts';

/** Where a webhook is, as kube-apiserver reads its `clientConfig`. */
export interface WebhookTarget {
  /** With the port if it is in the configuration, as in the header `host`. */
  readonly host: string;
  /** Without port, and without the brackets of an IPv6 address. */
  readonly hostname: string;
  readonly port: number;
  /** Without empty, `.` and `..` segments and without a slash at the end. */
  readonly path: string;
}

export const HTTPS_PORT = 443;

/** @throws {TypeError} if the URL of the webhook is not valid */
export function webhookTarget(client: JsonObject): WebhookTarget {
  const service = objectIn(client, 'service');
  if (!service) return targetOfUrl(textIn(client, 'url'));
  const port = numberIn(service, 'port') ?? HTTPS_PORT;
  const hostname = `${textIn(service, 'name')}.${textIn(service, 'namespace')}.svc`;
  const path = cleanPath(Buffer.from(textIn(service, 'path')));
  return { host: `${hostname}:${port}`, hostname, port, path };
}

/** @throws {TypeError} if the URL is not valid */
export function targetOfUrl(url: string): WebhookTarget {
  const { host, path } = parseGoUrl(url);
  const [, bracketed, name = '', port = ''] = /^(?:\[(.*)\]|([^:]*))(?::(\d*))?$/.exec(host) ?? [];
  return {
    host,
    hostname: bracketed ?? name,
    port: Number(port) || HTTPS_PORT,
    path: cleanPath(unescapePath(path)),
  };
}

function cleanPath(path: Buffer): string {
  const joined = posix.join('/', path.toString('latin1')).replace(/(?<=.)\/$/, '');
  return escapePath(Buffer.from(joined, 'latin1'));
}
