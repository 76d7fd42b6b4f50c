import type { HttpHandler } from '../../src/util/http.ts';
import { acceptedReason } from './accepted.ts';
import type { FuzzRequest, Json } from './requests.ts';
import { WIDGET_CRD, sequence } from './requests.ts';

/** The comparable part of a response. */
interface Shown {
  readonly status: number;
  readonly warning: string;
  readonly body: Json;
}

/** A sequence whose last request the two servers answer differently. */
export interface Difference {
  readonly requests: readonly FuzzRequest[];
  readonly ours: Shown;
  readonly real: Shown;
  /** Method, resource and first field that differs: equal for differences with one cause. */
  readonly signature: string;
}

/** Requests of a sequence. */
const LENGTH = 25;

export interface FuzzOptions {
  readonly seed: number;
  readonly operations: number;
  /**
   * Sequences that run at the same time.
   * @default 4
   */
  readonly concurrency?: number;
  /** Maximum number of different differences; the comparison ends when it is reached. */
  readonly limit: number;
}

/**
 * Sends the same generated requests to two servers. Returns the first difference of each signature, shortened,
 * except those that are accepted.
 */
export async function compareServers(
  ours: HttpHandler,
  real: HttpHandler,
  { seed, operations, concurrency = 4, limit }: FuzzOptions,
): Promise<readonly Difference[]> {
  for (const handle of [ours, real]) await install(handle);
  const found = new Map<string, Difference>();
  let index = 0;
  const work = async () => {
    while (index * LENGTH < operations && found.size < limit) {
      const number = index++;
      const requests = sequence(seed + number, LENGTH);
      for (let first = 0; first < requests.length;) {
        const rest = requests.slice(first);
        const difference = await firstDifference(
          ours,
          real,
          rest,
          `fuzz-${seed}-${number}-${first}`,
        );
        if (!difference) break;
        first += difference.requests.length;
        if (found.has(difference.signature) || acceptedReason(difference)) continue;
        found.set(difference.signature, difference);
        found.set(difference.signature, await shortened(ours, real, difference));
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return [...found.values()];
}

async function install(handle: HttpHandler): Promise<void> {
  const root = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await send(
    handle,
    { method: 'POST', path: root, subject: root, body: WIDGET_CRD },
    new Session('x'),
  );
  const { group, names } = WIDGET_CRD.spec;
  const path = `/apis/${group}/v1/namespaces/default/${names.plural}`;
  for (let attempt = 0; attempt < 200; attempt++) {
    const { status } = await send(handle, { method: 'GET', path, subject: path }, new Session('x'));
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${path} is not served`);
}

/** Sends the requests to a new namespace of both servers, up to the first difference. */
async function firstDifference(
  ours: HttpHandler,
  real: HttpHandler,
  requests: readonly FuzzRequest[],
  namespace: string,
): Promise<Difference | undefined> {
  const sides = [ours, real].map((handle) => ({ handle, session: new Session(namespace) }));
  const create: FuzzRequest = {
    method: 'POST',
    path: '/api/v1/namespaces',
    subject: '/api/v1/namespaces',
    body: { metadata: { name: namespace } },
  };
  await Promise.all(sides.map(({ handle, session }) => send(handle, create, session)));
  for (const [index, request] of requests.entries()) {
    const [left, right] = await Promise.all(
      sides.map(({ handle, session }) => send(handle, request, session)),
    );
    if (!left || !right) return undefined;
    const place = differenceOf(left, right, '');
    if (place === undefined) continue;
    const [resource = ''] = /(?<=\$ns\/)[^?]*/.exec(request.path) ?? [];
    const part = resource.split('/')[2] ?? '';
    const detail = `${left.status}/${right.status} ${place.replace(/\d+/g, '#')}`;
    const type = request.type?.replace(/application\/|-patch.*/g, '') ?? '';
    return {
      requests: requests.slice(0, index + 1),
      ours: left,
      real: right,
      signature: `${request.method} ${resource.split('/')[0]} ${part} ${type} ${detail}`,
    };
  }
  return undefined;
}

/** Removes requests that the difference does not need. */
async function shortened(
  ours: HttpHandler,
  real: HttpHandler,
  difference: Difference,
): Promise<Difference> {
  let best = difference;
  for (let index = best.requests.length - 2; index >= 0; index--) {
    const requests = best.requests.filter((_, each) => each !== index);
    const namespace = `fuzz-${Math.random().toString(36).slice(2)}`;
    const again = await firstDifference(ours, real, requests, namespace);
    if (again?.signature === difference.signature && again.requests.length === requests.length) {
      best = again;
    }
  }
  return best;
}

/** What differs between two servers by its nature: versions, uids, generated names and addresses. */
class Session {
  readonly namespace: string;
  readonly #last = new Map<string, Json>();
  readonly #versions = new Map<string, string>();
  readonly #names = new Map<string, string>();

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  fill(text: string, subject: string): string {
    const { metadata = {} } = this.#last.get(subject) ?? {};
    return text
      .replaceAll('$ns', this.namespace)
      .replaceAll('%24ns', this.namespace)
      .replaceAll('$rv', metadata.resourceVersion ?? '1')
      .replaceAll('$uid', metadata.uid ?? 'none')
      .replaceAll('%24continue', metadata.continue ?? '');
  }

  remember(subject: string, body: Json): void {
    if (body?.metadata && body.kind !== 'Status') this.#last.set(subject, body);
  }

  /** Returns a copy of a value of a response without what differs. */
  shown(value: Json, field = '', isList = false): Json {
    if (typeof value === 'string') return this.#shownText(value, field, isList);
    if (field === 'nodePort' || field === 'healthCheckNodePort') return 'PORT';
    if (Array.isArray(value)) {
      const items = value.map((item) => this.shown(item, field));
      return ['managedFields', 'causes'].includes(field) ? sorted(items) : items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const isStatus = value.kind === 'Status' && (value.details?.causes?.length ?? 0) > 1;
    const entries = Object.entries(value)
      // The message lists the causes, whose order does not matter.
      .filter(([name]) => !(isStatus && name === 'message'))
      .map(([name, member]) => [
        name,
        this.shown(member, name, isList || Array.isArray(value.items)),
      ]);
    return Object.fromEntries(entries);
  }

  #shownText(text: string, field: string, isList: boolean): string {
    if (field === 'resourceVersion')
      return isList ? 'VERSION' : this.#named(this.#versions, text, 'VERSION');
    if (field === 'continue') return 'CONTINUE';
    if (field === 'clusterIP' || field === 'clusterIPs') return text.replace(/^10\..*/, 'ADDRESS');
    return text
      .replaceAll(this.namespace, 'NAMESPACE')
      .replace(/\bmade\d+-[a-z0-9]{5}\b/g, (name) => this.#named(this.#names, name, 'made-'))
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, 'UID')
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (time) =>
        time.startsWith('2020') ? time : 'TIME',
      )
      .replace(/Invalid value: "(?:\{|map\[).*[}\]]": (?=\w)/gs, 'Invalid value: OBJECT: ')
      .replace(/Key: [^,]*/, 'Key: KEY')
      .replace(/(previously negative\)).*/s, '$1')
      .replace(/(record \(|"resourceVersion\\*":\\*")\d+/g, '$1VERSION');
  }

  #named(known: Map<string, string>, value: string, name: string): string {
    const number = known.get(value) ?? `${name}${known.size}`;
    known.set(value, number);
    return number;
  }
}

async function send(handle: HttpHandler, request: FuzzRequest, session: Session): Promise<Shown> {
  const { method, path, subject, type = 'application/json', body } = request;
  const text = body === undefined ? undefined : session.fill(JSON.stringify(body), subject);
  const response = await handle({
    method,
    path: session.fill(path, subject),
    headers: {
      accept: 'application/json',
      'user-agent': 'fuzz/1',
      ...(text !== undefined && { 'content-type': type }),
    },
    ...(text !== undefined && { body: text }),
  });
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  const received = Buffer.concat(chunks).toString();
  const isJson = response.headers['content-type']?.startsWith('application/json');
  const value: Json = isJson && received !== '' ? JSON.parse(received) : received;
  session.remember(subject, value);
  return {
    status: response.status,
    warning: session.shown(response.headers['warning'] ?? ''),
    body: session.shown(value),
  };
}

function sorted(items: readonly Json[]): Json[] {
  return items.toSorted((a, b) =>
    JSON.stringify(canonical(a)) < JSON.stringify(canonical(b)) ? -1 : 1,
  );
}

function canonical(value: Json): Json {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  );
}

/** Returns the path of the first difference, or undefined. */
function differenceOf(left: Json, right: Json, path: string): string | undefined {
  if (left === right) return undefined;
  if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) return path;
  for (const key of [...new Set([...Object.keys(left), ...Object.keys(right)])].sort()) {
    const place = differenceOf(left[key], right[key], `${path}.${key}`);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** Returns a difference as text: its requests and the two answers. */
export function describe({ signature, requests, ours, real }: Difference): string {
  const lines = requests.map(({ method, path, type, body }) =>
    [method, path, type, body && JSON.stringify(body)].filter(Boolean).join(' '),
  );
  const answers = [ours, real].map((shown) => JSON.stringify(canonical(shown)));
  return [`## ${signature}`, ...lines, `  ours ${answers[0]}`, `  real ${answers[1]}`].join('\n');
}
