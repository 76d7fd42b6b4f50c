/** Generates sequences of requests to a Kubernetes API from a seed. */
import { stringify } from 'yaml';
import { USERS } from './access-kinds.ts';
import { BUILTIN_FUZZ_KINDS } from './builtin-kinds.ts';
import { Choices } from './choices.ts';
import type { Field } from './fields.ts';
import type { FuzzKind } from './kinds.ts';
import { KINDS, METADATA } from './kinds.ts';
import type { Change } from './schema-values.ts';

/** A JSON value whose parts are read without checks. */
export type Json = ReturnType<typeof JSON.parse>;

/**
 * A request. In its path and body, `$ns` is the namespace, and `$rv`, `$uid` and `$continue` are values of the last
 * response about the resource or object, which differ between servers.
 */
export interface FuzzRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  /** Path of the object or list whose last response `$rv`, `$uid` and `$continue` are from. */
  readonly subject: string;
  readonly type?: string;
  /** A value that is sent as JSON, or a text. */
  readonly body?: Json;
  /** @default application/json */
  readonly accept?: string;
  /** The user that is impersonated. */
  readonly user?: string;
  /** The field that the request is about, and its value. Differences of other fields are other kinds. */
  readonly field?: string;
  /** The list that is watched; the events up to the end of the sequence are compared. */
  readonly watched?: string;
}

const META = 'g=meta.k8s.io;v=v1';
const YAML = 'application/yaml';
const ACCEPTED = [
  `application/json;as=Table;${META}`,
  `application/json;as=PartialObjectMetadata;${META}`,
  `application/json;as=PartialObjectMetadataList;${META}`,
  `application/json;as=Table;${META},application/json`,
  YAML,
];

/** Requests of a sequence. */
const LENGTH = 25;

/** Returns random sequences, each in one namespace. Most requests are about one kind and three names. */
export function* randomSequences(seed: number, operations: number): Generator<FuzzRequest[]> {
  const seeds = new Choices(seed);
  for (let index = 0; index * LENGTH < operations; index++) {
    yield new RequestGenerator(new Choices(seeds.below(2 ** 32))).sequence(LENGTH);
  }
}

class RequestGenerator {
  readonly #choices: Choices;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  sequence(count: number): FuzzRequest[] {
    const all = this.#choices.chance(0.5) ? KINDS : BUILTIN_FUZZ_KINDS;
    const kinds = [this.#choices.one(all), this.#choices.one(all)];
    return Array.from({ length: count }, () => this.#request(this.#choices.one(kinds)));
  }

  #request(kind: FuzzKind): FuzzRequest {
    const place = kind.isClusterScoped ? '' : '/namespaces/$ns';
    const root = kind.apiVersion.includes('/') ? '/apis/' : '/api/';
    const [version = kind.apiVersion] =
      kind.otherVersions && this.#choices.chance(0.5)
        ? [this.#choices.one(kind.otherVersions)]
        : [];
    const known = `${root}${kind.apiVersion}${place}/${kind.resource}`;
    const list = `${root}${version}${place}/${kind.resource}`;
    const request = this.#requestOf({ ...kind, apiVersion: version }, list);
    const yaml =
      request.type === undefined && request.body !== undefined && this.#choices.chance(0.05);
    return {
      ...request,
      path: kind.isDryRun ? dryRun(request.path) : request.path,
      // Versions of one object share their resourceVersion.
      subject: request.subject.replace(list, known),
      ...(yaml && { type: YAML, body: stringify(request.body) }),
      ...(this.#choices.chance(kind.users ? 0.5 : 0.06) && {
        user: this.#choices.one(kind.users ?? USERS),
      }),
      ...(this.#choices.chance(kind.isCreateOnly ? 0 : 0.1) && {
        accept: this.#choices.one(ACCEPTED),
        ...(request.watched !== undefined && { accept: this.#choices.one(ACCEPTED.slice(0, 2)) }),
      }),
    };
  }

  #requestOf(kind: FuzzKind, list: string): FuzzRequest {
    const name = this.#choices.one(kind.names ?? ['a', 'a', 'a', 'b', 'c']);
    const subject = `${list}/${name}`;
    const part =
      this.#choices.chance(0.25) && kind.subresources
        ? `/${this.#choices.one(kind.subresources)}`
        : '';
    const path = `${subject}${part}`;
    const roll = this.#choices.number();
    if (roll < 0.25 || kind.isCreateOnly) return this.#create(kind, list, name);
    if (roll < 0.4) return this.#update(kind, path, subject, name, part);
    if (roll < 0.7) return this.#patch(kind, path, subject, name, part);
    if (roll < 0.8 && !kind.isDryRun) return this.#delete(kind, list, subject);
    // Lists of cluster-scoped objects have those of other sequences.
    if (roll < 0.85 || kind.isClusterScoped) return { method: 'GET', path, subject };
    if (roll < 0.93 || kind.isDryRun) return this.#list(kind, list);
    return this.#watch(kind, list, name);
  }

  #create(kind: FuzzKind, list: string, name: string): FuzzRequest {
    const body = this.#object(kind, name, '');
    if (this.#choices.chance(0.05)) {
      delete body.metadata?.name;
      body.metadata = { ...body.metadata, generateName: `made${this.#choices.below(1000)}-` };
    }
    return {
      method: 'POST',
      path: `${list}${this.#writeQuery()}`,
      subject: `${list}/${name}`,
      body,
    };
  }

  #update(kind: FuzzKind, path: string, subject: string, name: string, part: string): FuzzRequest {
    const body = this.#object(kind, name, part);
    if (this.#choices.chance(0.6)) body.metadata = { ...body.metadata, resourceVersion: '$rv' };
    return { method: 'PUT', path: `${path}${this.#writeQuery()}`, subject, body };
  }

  #patch(kind: FuzzKind, path: string, subject: string, name: string, part: string): FuzzRequest {
    const type = this.#choices.one(['merge', 'json', 'strategic', 'apply', 'apply']);
    const patch = { method: 'PATCH' as const, subject };
    if (type === 'apply') {
      const manager = this.#choices.one(['m1', 'm2', 'm3']);
      const force = this.#choices.chance(0.4) ? '&force=true' : '';
      const body = this.#object(kind, name, part);
      return {
        ...patch,
        path: `${path}?fieldManager=${manager}${force}`,
        type: 'application/apply-patch+yaml',
        body,
      };
    }
    if (type === 'json') {
      const body = Array.from({ length: 1 + this.#choices.below(3) }, () =>
        this.#operation(kind, part),
      );
      return {
        ...patch,
        path: `${path}${this.#writeQuery()}`,
        type: 'application/json-patch+json',
        body,
      };
    }
    const body: Json = {};
    this.#mutate(body, kind, part, 1 + this.#choices.below(2), null);
    return {
      ...patch,
      path: `${path}${this.#writeQuery()}`,
      type: `application/${type === 'merge' ? '' : 'strategic-'}merge-patch+json`,
      body,
    };
  }

  #operation(kind: FuzzKind, part: string): Json {
    const [field, value] = this.#change(kind, part);
    const path = `/${field.map((name) => name.replaceAll('/', '~1')).join('/')}`;
    const op = this.#choices.one(['add', 'add', 'replace', 'replace', 'remove', 'test', 'copy']);
    if (op === 'remove') return { op, path };
    if (op === 'copy')
      return {
        op,
        from: '/metadata/labels',
        path: this.#choices.one(['/metadata/annotations', path]),
      };
    return { op, path, value: value ?? null };
  }

  #delete(kind: FuzzKind, list: string, subject: string): FuzzRequest {
    if (!kind.isClusterScoped && this.#choices.chance(0.1)) {
      const query = this.#choices.one([
        '',
        '?labelSelector=a%3Dx',
        '?limit=1',
        '?dryRun=All',
        '?fieldSelector=metadata.name%3Da',
      ]);
      return { method: 'DELETE', path: `${list}${query}`, subject: list };
    }
    const query = this.#choices.one([
      '',
      '',
      '?propagationPolicy=Foreground',
      '?gracePeriodSeconds=0',
      '?dryRun=All',
      '?propagationPolicy=x',
      '?gracePeriodSeconds=x',
      '?orphanDependents=true',
      '?uid=x',
    ]);
    const body = this.#choices.one<Json>([
      undefined,
      undefined,
      {},
      { gracePeriodSeconds: 0 },
      { gracePeriodSeconds: 5 },
      { propagationPolicy: 'Orphan' },
      { propagationPolicy: 'Background', orphanDependents: true },
      { preconditions: { uid: '$uid' } },
      { preconditions: { resourceVersion: '$rv' } },
      { preconditions: { uid: 'x' } },
      { preconditions: { resourceVersion: '1' } },
      { dryRun: ['All'] },
      { gracePeriodSeconds: 'x' },
      { propagationPolicy: 5 },
    ]);
    return {
      method: 'DELETE',
      path: `${subject}${query}`,
      subject,
      ...(body !== undefined && { body }),
    };
  }

  #list(kind: FuzzKind, list: string): FuzzRequest {
    const query = this.#selection(kind);
    if (this.#choices.chance(0.3))
      query.set('limit', this.#choices.one(['1', '2', '0', '-1', 'x']));
    if (this.#choices.chance(0.2))
      query.set('continue', this.#choices.one(['$continue', '$continue', 'x']));
    if (this.#choices.chance(0.2)) query.set('resourceVersion', this.#choices.one(['0', 'x']));
    if (this.#choices.chance(0.1))
      query.set('resourceVersionMatch', this.#choices.one(['NotOlderThan', 'Exact', 'x']));
    return { method: 'GET', path: `${list}?${query.toString()}`, subject: list };
  }

  /** A watch from now, from a known resourceVersion or with the existing objects, by each kind of path. */
  #watch(kind: FuzzKind, list: string, name: string): FuzzRequest {
    const query = this.#selection(kind);
    if (this.#choices.chance(0.7))
      query.set('resourceVersion', this.#choices.one(['$rv', '$rv', '$rv', '$rv', '0', 'x', '']));
    if (this.#choices.chance(0.4))
      query.set('allowWatchBookmarks', this.#choices.one(['true', 'true', 'true', 'false', 'x']));
    if (this.#choices.chance(0.3)) {
      query.set('sendInitialEvents', this.#choices.one(['true', 'true', 'true', 'false', 'x']));
      query.set('resourceVersionMatch', 'NotOlderThan');
    }
    if (this.#choices.chance(0.03))
      query.set('resourceVersionMatch', this.#choices.one(['Exact', 'x', '']));
    if (this.#choices.chance(0.1))
      query.set('timeoutSeconds', this.#choices.one(['1', '600', '0', '-1', 'x']));
    if (this.#choices.chance(0.03)) query.set('limit', '1');
    if (this.#choices.chance(0.03)) query.set('continue', 'x');
    const parts = list.split('/');
    const legacy = [...parts.slice(0, -3), 'watch', ...parts.slice(-3)].join('/');
    const path = this.#choices.one([
      list,
      list,
      list,
      list,
      `${list}/${name}`,
      legacy,
      `${legacy}/${name}`,
    ]);
    if (!path.includes('/watch/'))
      query.set('watch', this.#choices.one(['true', 'true', 'true', '1', '']));
    const subject = this.#choices.one([list, `${list}/${name}`]);
    return { method: 'GET', path: `${path}?${query.toString()}`, subject, watched: list };
  }

  #selection({ selectors = [] }: FuzzKind): URLSearchParams {
    const query = new URLSearchParams();
    if (this.#choices.chance(0.3))
      query.set(
        'labelSelector',
        this.#choices.one([
          'a=x',
          'a',
          '!a',
          'a in (x, y)',
          'a!=x',
          'a,b',
          'a=',
          'a in x',
          'a>x',
          'a=x,',
        ]),
      );
    if (this.#choices.chance(0.3))
      query.set(
        'fieldSelector',
        this.#choices.one([
          'metadata.name=a',
          'metadata.name!=a',
          'metadata.namespace=$ns',
          'x=y',
          'metadata.name',
          ...selectors,
        ]),
      );
    return query;
  }

  /** Returns an object with up to three fields of other values. For `/scale`, it is a Scale. */
  #object(kind: FuzzKind, name: string, part: string): Json {
    const { apiVersion, base } = kind;
    if (part === '/scale') {
      const scale = {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name, namespace: '$ns' },
        spec: { replicas: this.#choices.one<Json>([0, 1, 2, 3, -1, 'x', undefined]) },
      };
      if (this.#choices.chance(0.3)) this.#mutate(scale, { ...kind, fields: [] }, '', 1);
      return scale;
    }
    const object = { apiVersion, kind: kind.kind, metadata: { name }, ...structuredClone(base) };
    this.#mutate(object, kind, part, this.#choices.below(4));
    return object;
  }

  #mutate(object: Json, kind: FuzzKind, part: string, count: number, absent?: null): void {
    for (let index = 0; index < count; index++) {
      const [path, value] = this.#change(kind, part);
      setAt(object, path, value ?? (absent === null ? null : undefined));
    }
  }

  #change(kind: FuzzKind, part: string): Change {
    const generated = kind.change?.(this.#choices, part);
    if (generated) return generated;
    const { isClusterScoped, isDryRun } = kind;
    const fields = this.#fieldsOf(kind, part);
    const [field, ...values] = this.#choices.one(
      // The names of cluster-scoped objects are those of one sequence.
      isClusterScoped && !isDryRun ? fields.filter(([path]) => path !== 'metadata.name') : fields,
    );
    return [field.split('.'), this.#value(values)];
  }

  #fieldsOf({ fields }: FuzzKind, part: string): readonly Field[] {
    const status = fields.filter(([path]) => path === 'status');
    if (part === '/status' && this.#choices.chance(0.7) && status.length > 0) return status;
    return this.#choices.chance(0.25) || fields.length === 0 ? METADATA : fields;
  }

  /** Prefers the first values, which are valid. */
  #value(values: readonly Json[]): Json {
    return structuredClone(values[Math.floor(this.#choices.number() ** 1.7 * values.length)]);
  }

  #writeQuery(): string {
    if (this.#choices.chance(0.7)) return '';
    return this.#choices.one([
      '?fieldManager=m1',
      '?fieldValidation=Strict',
      '?fieldValidation=Ignore',
      '?dryRun=All',
      '?fieldManager=m2&fieldValidation=Strict',
      '?dryRun=x',
      '?fieldValidation=x',
      '?force=true',
    ]);
  }
}

function dryRun(path: string): string {
  const [list = '', query] = path.split('?');
  const options = new URLSearchParams(query);
  options.set('dryRun', 'All');
  return `${list}?${options.toString()}`;
}

function setAt(object: Json, [field = '', ...rest]: readonly string[], value: Json): void {
  if (rest.length > 0) {
    const isIndex = rest[0] === '0';
    const current = object[field];
    if (typeof current !== 'object' || current === null || Array.isArray(current) !== isIndex)
      object[field] = isIndex ? [] : {};
    setAt(object[field], rest, value);
  } else if (value === undefined) delete object[field];
  else object[field] = value;
}
