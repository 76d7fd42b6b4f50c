import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { parse } from 'yaml';

/** The connection of a kubeconfig's only cluster and user, for requests without a client library. */
export interface ServerAddress {
  readonly server: string;
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string };
  readonly token: string | undefined;
}

interface Kubeconfig {
  readonly clusters: readonly [
    {
      readonly cluster: { readonly server: string; readonly 'certificate-authority-data'?: string };
    },
  ];
  readonly users: readonly [{ readonly user: Readonly<Record<string, string | undefined>> }];
}

export function readKubeconfig(path: string): ServerAddress {
  const { clusters, users } = parse(readFileSync(path, 'utf8')) as Kubeconfig;
  const [{ cluster }] = clusters;
  const [{ user }] = users;
  const decoded = (text: string | undefined) =>
    text === undefined ? undefined : Buffer.from(text, 'base64').toString();
  const ca = decoded(cluster['certificate-authority-data']);
  const cert = decoded(user['client-certificate-data']);
  const key = decoded(user['client-key-data']);
  return {
    server: cluster.server,
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
    token: user['token'],
  };
}

/** Sends requests to an API server, with few connections and without a cache. */
export class ServerApi {
  readonly #origin: string;
  readonly #agent: Agent;
  readonly #headers: Readonly<Record<string, string>>;

  constructor({ server, tls, token }: ServerAddress, connections = 10) {
    this.#origin = server;
    this.#agent = new Agent({
      connect: tls,
      connections,
      allowH2: false,
      // A busy server can delay the answers to these requests, which must not fail.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    this.#headers = {
      accept: 'application/json',
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
  }

  /** Returns the body, parsed. @throws {Error} for a status other than 2xx */
  async request<T>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: object,
  ): Promise<T> {
    const text = await (await this.open(method, path, body)).text();
    return JSON.parse(text) as T;
  }

  async open(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, body?: object) {
    const answer = await this.#agent.request({
      origin: this.#origin,
      path,
      method,
      headers: this.#headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    if (answer.statusCode < 300) return answer.body;
    throw new Error(`${method} ${path}: ${answer.statusCode}: ${await answer.body.text()}`);
  }

  /** Returns the number of objects of a collection without reading them. */
  async count(path: string): Promise<number> {
    const { items, metadata } = await this.request<{
      readonly items: readonly object[];
      readonly metadata: { readonly remainingItemCount?: number };
    }>('GET', `${path}?limit=1`);
    return items.length + (metadata.remainingItemCount ?? 0);
  }

  /** Installs a CustomResourceDefinition of `crds/`. Resolves when the collection at `path` is served. */
  async install(file: string, path: string): Promise<void> {
    const text = readFileSync(join(import.meta.dirname, '../../../crds', file), 'utf8');
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await this.request('POST', definitions, parse(text) as object);
    for (;;) {
      try {
        await this.count(path);
        return;
      } catch {
        // The resource is not served yet.
        await sleep(50);
      }
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Calls `work` with 0 to `count` - 1, some concurrently. */
export async function inParallel(
  count: number,
  width: number,
  work: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
