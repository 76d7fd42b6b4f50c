import type { ApiServerOptions } from '../../../src/apiserver/api-server-options.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpRequest } from '../../../src/util/http.ts';

/** What a test reads of an answer; a wrong guess fails the test. */
export type Json = ReturnType<typeof JSON.parse>;

export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: Json;
}

export const MERGE = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const STRATEGIC = 'application/strategic-merge-patch+json';
export const APPLY = 'application/apply-patch+yaml';

export const COUNTS = '/apis/demo.mark8s.io/v1/namespaces/default/counts';
export const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
export const PODS = '/api/v1/namespaces/default/pods';
export const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** A server with a clock of its own, asked through its handler. */
export class Api {
  readonly clock: FakeClock;
  readonly server: ApiServer;

  constructor(options: ApiServerOptions = {}) {
    this.clock = new FakeClock();
    this.server = new ApiServer({ clock: this.clock, ...options });
  }

  async send(
    method: HttpRequest['method'],
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply> {
    const response = await this.server.handler({
      method,
      path,
      headers: { 'content-type': 'application/json', 'user-agent': 'tester/1', ...headers },
      ...(body !== undefined && {
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    });
    const text = await textOf(response.body);
    const isJson = response.headers['content-type']?.startsWith('application/json');
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson && text ? JSON.parse(text) : undefined,
    };
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Reply> {
    return this.send('GET', path, undefined, headers);
  }

  post(path: string, body: unknown): Promise<Reply> {
    return this.send('POST', path, body);
  }

  put(path: string, body: unknown): Promise<Reply> {
    return this.send('PUT', path, body);
  }

  patch(path: string, body: unknown, type: string = MERGE): Promise<Reply> {
    return this.send('PATCH', path, body, { 'content-type': type });
  }

  delete(path: string, options?: unknown): Promise<Reply> {
    return this.send('DELETE', path, options);
  }

  /** Opens a watch and gathers what it says. */
  async watch(path: string, headers: Record<string, string> = {}): Promise<Watching> {
    const stop = new AbortController();
    const joiner = path.includes('?') ? '&' : '?';
    const response = await this.server.handler({
      method: 'GET',
      path: `${path}${joiner}watch=true`,
      headers,
      signal: stop.signal,
    });
    return new Watching(response.body, stop);
  }
}

/** A watch as it is read. */
export class Watching {
  readonly #stop: AbortController;
  readonly #done: Promise<void>;
  readonly #events: Json[] = [];
  ended = false;
  error: unknown;

  constructor(body: AsyncIterable<Uint8Array>, stop: AbortController) {
    this.#stop = stop;
    this.#done = this.#read(body);
  }

  /** Everything said so far. */
  async events(): Promise<Json[]> {
    await settle();
    return this.#events;
  }

  /** `ADDED a`, `BOOKMARK 7`: what was said since the last call, in short. */
  async said(): Promise<string[]> {
    const events = (await this.events()).splice(0);
    return events.map(({ type, object }) =>
      type === 'BOOKMARK'
        ? `BOOKMARK ${object.metadata.resourceVersion}`
        : `${type} ${object.metadata.name ?? object.reason}`,
    );
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('stopped by the test'));
    await this.#done;
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    try {
      for await (const chunk of body) {
        const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) this.#events.push(JSON.parse(line));
      }
    } catch (error) {
      this.error = error;
    }
    this.ended = true;
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) text += decoder.decode(chunk, { stream: true });
  return text;
}

/** A CRD small enough to be read at a glance. */
export function countCrd(change: (crd: Json) => void = () => undefined): Json {
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'counts.demo.mark8s.io' },
    spec: {
      group: 'demo.mark8s.io',
      scope: 'Namespaced',
      names: { plural: 'counts', singular: 'count', kind: 'Count', shortNames: ['ct'] },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.count',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
          additionalPrinterColumns: [{ name: 'Desired', type: 'integer', jsonPath: '.spec.count' }],
          selectableFields: [{ jsonPath: '.spec.name' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              required: ['spec'],
              properties: {
                spec: {
                  type: 'object',
                  required: ['name'],
                  properties: {
                    name: { type: 'string', minLength: 1 },
                    count: { type: 'integer', minimum: 0, default: 1 },
                  },
                },
                status: {
                  type: 'object',
                  properties: {
                    replicas: { type: 'integer' },
                    selector: { type: 'string' },
                    healthy: { type: 'boolean' },
                  },
                },
              },
            },
          },
        },
      ],
    },
  };
  change(crd);
  return crd;
}

export function count(name: string, spec: object = { name: 'nginx', count: 3 }): Json {
  return { apiVersion: 'demo.mark8s.io/v1', kind: 'Count', metadata: { name }, spec };
}

export function configMap(name: string, data: object = { a: '1' }): Json {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data };
}

export function pod(name: string, metadata: object = {}): Json {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...metadata },
    spec: { containers: [{ name: 'web', image: 'nginx' }] },
  };
}

/** A server that serves Counts. */
export async function apiWithCounts(options: ApiServerOptions = {}): Promise<Api> {
  const api = new Api(options);
  await api.post(CRDS, countCrd());
  return api;
}
