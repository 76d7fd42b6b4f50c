import { CORE_SCHEMA, load } from 'js-yaml';
import { ApiError } from '../../src/api/api-error.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';
import type { FuzzRequest, Json } from './requests.ts';
import type { FuzzWatch } from './watch.ts';
import { openWatch } from './watch.ts';

/** The comparable part of a response. */
export interface Shown {
  readonly status: number;
  readonly warning: string;
  readonly body: Json;
}

/**
 * The requests of a sequence to one server, and what differs between servers by its nature: versions, uids, generated names and
 * addresses.
 */
export class Session {
  readonly namespace: string;
  /** Open watches, in the order of their requests. */
  readonly watches: FuzzWatch[] = [];
  readonly #handle: HttpHandler;
  readonly #last = new Map<string, Json>();
  readonly #versions = new Map<string, string>();
  readonly #names = new Map<string, string>();

  constructor(handle: HttpHandler, namespace: string) {
    this.#handle = handle;
    this.namespace = namespace;
  }

  async send(request: FuzzRequest): Promise<Shown> {
    try {
      return await this.#send(request);
    } catch (error) {
      // kube-apiserver closes the connection if the handler of a request panics.
      if (!(error instanceof ApiError)) throw error;
      return { status: 0, warning: '', body: 'the connection broke' };
    }
  }

  async #send(request: FuzzRequest): Promise<Shown> {
    const { method, path, subject, type = 'application/json', body, watched } = request;
    // A watch or a list from any version has the state of the cache, which a consistent list updates.
    const cached = path.includes('resourceVersion=0') ? request.subject : watched;
    if (cached !== undefined) await this.#receive({ method: 'GET', path: cached, subject: cached });
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const sent = {
      method,
      path: this.#fill(path, watched !== undefined && !this.#last.has(subject) ? watched : subject),
      headers: {
        accept: request.accept ?? 'application/json',
        'user-agent': 'fuzz/1',
        ...(request.user !== undefined && { 'impersonate-user': request.user }),
        ...(text !== undefined && { 'content-type': type }),
      },
      ...(text !== undefined && {
        body: this.#fill(text.replace(/: (\$\w+)$/gm, ': "$1"'), subject),
      }),
    };
    if (watched === undefined) return this.#receive(request, await this.#handle(sent));
    const stop = new AbortController();
    const response = await this.#handle({ ...sent, signal: stop.signal });
    const isStream = response.status === 200 && /[?&]watch=(?!false|0)|\/watch\//.test(path);
    if (!isStream) return this.#receive(request, response);
    this.watches.push(await openWatch(response.body, stop, path));
    return { status: 200, warning: this.shown(response.headers['warning'] ?? ''), body: 'watch' };
  }

  async #receive(request: FuzzRequest, answer?: HttpResponse): Promise<Shown> {
    const { method, path } = request;
    const headers = { accept: 'application/json' };
    const response =
      answer ?? (await this.#handle({ method, path: this.#fill(path, ''), headers }));
    const chunks: Uint8Array[] = [];
    for await (const chunk of response.body) chunks.push(chunk);
    const received = Buffer.concat(chunks).toString();
    const type = response.headers['content-type'] ?? '';
    const value = received === '' ? received : parsed(type, received);
    if (value?.metadata && value.kind !== 'Status') this.#last.set(request.subject, value);
    return {
      status: response.status,
      warning: this.shown(response.headers['warning'] ?? ''),
      body: this.shown(value),
    };
  }

  #fill(text: string, subject: string): string {
    const { metadata = {} } = this.#last.get(subject) ?? {};
    return text
      .replaceAll('$ns', this.namespace)
      .replaceAll('%24ns', this.namespace)
      .replaceAll('$rv', metadata.resourceVersion ?? '1')
      .replaceAll('%24rv', metadata.resourceVersion ?? '1')
      .replaceAll('$uid', metadata.uid ?? 'none')
      .replaceAll('%24continue', metadata.continue ?? '');
  }

  async close(): Promise<void> {
    await Promise.all(this.watches.map((watch) => watch.close()));
  }

  /** Returns a copy of a value of a response without what differs. */
  shown(value: Json, field = '', isList = false): Json {
    if (typeof value === 'string') return this.#shownText(value, field, isList);
    if (field === 'nodePort' || field === 'healthCheckNodePort') return 'PORT';
    if (Array.isArray(value)) {
      const items = value.map((item) => this.shown(item, field));
      return UNORDERED.has(field) ? sorted(items) : items;
    }
    if (typeof value !== 'object' || value === null) return value;
    const isStatus = value.kind === 'Status' && (value.details?.causes?.length ?? 0) > 1;
    const entries = Object.entries(value)
      // The message lists the causes, whose order does not matter.
      .filter(([name]) => !(isStatus && name === 'message'))
      // Descriptions are documentation.
      .filter(([name]) => !(field === 'columnDefinitions' && name === 'description'))
      .map(([name, member]) => [
        name,
        this.shown(
          member,
          name,
          isList || Array.isArray(value.columnDefinitions ?? value.items) || value.items === null,
        ),
      ]);
    const shown = Object.fromEntries(entries);
    // The object of a bookmark has the zero values of its kind, and the version of the whole store.
    if (shown.type === 'BOOKMARK')
      return { ...shown, object: { ...shown.object.metadata, resourceVersion: 'VERSION' } };
    return shown;
  }

  #shownText(text: string, field: string, isList: boolean): string {
    if (field === 'resourceVersion')
      return isList ? 'VERSION' : this.#named(this.#versions, text, 'VERSION');
    if (field === 'continue') return 'CONTINUE';
    if (field === 'cells' && /^10\.\d+\.\d+\.\d+$/.test(text)) return 'ADDRESS';
    if (field === 'cells') text = text.replace(/:3\d{4}\//g, ':PORT/');
    if (field === 'cells' && /^\d+s$/.test(text)) return 'AGE';
    if (field === 'clusterIP' || field === 'clusterIPs') return text.replace(/^10\..*/, 'ADDRESS');
    return (
      text
        .replaceAll(this.namespace, 'NAMESPACE')
        .replace(/\bmade\d+-[a-z0-9]{5}\b/g, (name) => this.#named(this.#names, name, 'made-'))
        .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, 'UID')
        .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, (time) =>
          time.startsWith('2020') ? time : 'TIME',
        )
        .replace(
          /Invalid value: (?:"(?:\{|map\[).*[}\]]"|[[{].*[}\]]): (?=\w)/gs,
          'Invalid value: OBJECT: ',
        )
        .replace(/Key: [^,]*/, 'Key: KEY')
        // Go iterates over maps in random order.
        .replace(/(?<=errors:\n)[^]*/, (lines) => lines.split('\n').sort().join('\n'))
        .replace(
          /((?:record|precondition) \(|resourceVersion\\*"?: ?\\*"|too old resource version: )\d+(?: \(\d+\))?/g,
          '$1VERSION',
        )
    );
  }

  #named(known: Map<string, string>, value: string, name: string): string {
    const number = known.get(value) ?? `${name}${known.size}`;
    known.set(value, number);
    return number;
  }
}

/** Lists whose order is random in Go, or has no meaning. */
const UNORDERED: ReadonlySet<string> = new Set([
  'managedFields',
  'causes',
  'resourceRules',
  'nonResourceRules',
]);

/** The style of YAML is not compared. */
function parsed(type: string, text: string): Json {
  if (type.startsWith('application/yaml')) return load(text, { schema: CORE_SCHEMA });
  return type.startsWith('application/json') ? JSON.parse(text) : text;
}

function sorted(items: readonly Json[]): Json[] {
  return items.toSorted((a, b) =>
    JSON.stringify(canonical(a)) < JSON.stringify(canonical(b)) ? -1 : 1,
  );
}

/** Returns a value whose keys are sorted. */
export function canonical(value: Json): Json {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, canonical(value[key])]),
  );
}
