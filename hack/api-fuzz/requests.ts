/** Generates sequences of requests to a Kubernetes API from a seed. */

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
  readonly body?: Json;
}

/** A field, and values of it: valid ones first, then invalid ones. `undefined` removes the field. */
type Field = readonly [path: string, ...values: readonly Json[]];

interface FuzzKind {
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  readonly base: Json;
  readonly fields: readonly Field[];
  readonly subresources?: readonly ('status' | 'scale')[];
  readonly selectors?: readonly string[];
}

export const GROUP = 'fuzz.example.com';

const LONG = 'x'.repeat(300);
const PARTS = [
  [{ name: 'a', value: 1 }],
  [{ name: 'b' }, { name: 'a', value: 2 }],
  [],
  [{ name: 'a' }, { name: 'a' }],
  [{}],
  'x',
];
const CONTAINERS = [
  [{ name: 'c', image: 'i' }],
  [
    {
      name: 'c',
      image: 'i',
      env: [{ name: 'A', value: 'b' }, { name: 'B' }],
      ports: [{ containerPort: 80 }],
    },
  ],
  [
    {
      name: 'c',
      image: 'j',
      resources: { requests: { cpu: '0.5', memory: '1Gi' }, limits: { cpu: 1 } },
    },
  ],
  [
    { name: 'c', image: 'i' },
    { name: 'd', image: 'i', command: ['x'], imagePullPolicy: 'Never' },
  ],
  [{ name: 'c', image: 'i:1', livenessProbe: { httpGet: { port: 80 } }, volumeMounts: [] }],
  [{ name: 'c' }],
  [{ name: 'C_', image: 'i' }],
  [],
  [{ name: 'c', image: 'i', resources: { requests: { cpu: 'x' } } }],
  [{ name: 'c', image: 'i', ports: [{ containerPort: 0 }] }],
  [{ name: 'c', image: 'i', env: [{ value: 'b' }] }],
  'x',
] as const;

const METADATA: readonly Field[] = [
  [
    'metadata.labels',
    { a: 'x' },
    { a: 'y', b: 'x' },
    {},
    undefined,
    { a: '-' },
    { 'a/b/c': 'x' },
    { a: 1 },
    'x',
  ],
  ['metadata.annotations', { a: 'x' }, { b: '' }, undefined, { 'A B': 'x' }, [1]],
  [
    'metadata.finalizers',
    ['example.com/a'],
    ['example.com/a', 'example.com/b'],
    [],
    undefined,
    ['a'],
    'x',
  ],
  [
    'metadata.ownerReferences',
    [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }],
    undefined,
    [{ kind: 'Pod' }],
  ],
  ['metadata.resourceVersion', '$rv', '$rv', '$rv', undefined, '1', 'x', '0'],
  ['metadata.uid', '$uid', undefined, 'x'],
  ['metadata.name', 'a', 'b', undefined, 'Upper', LONG, ''],
  ['metadata.namespace', '$ns', 'other', ''],
  ['metadata.generation', 7],
  ['metadata.creationTimestamp', null, '2020-01-01T00:00:00Z', 'x'],
  ['metadata.unknown', 1],
  ['unknown', { a: 1 }],
  ['apiVersion', undefined, 'v9', 5],
  ['kind', undefined, 'Nothing'],
];

const POD_SPEC: readonly Field[] = [
  ['containers', ...CONTAINERS],
  ['restartPolicy', 'Always', 'Never', undefined, 'Sometimes', 1],
  ['terminationGracePeriodSeconds', 0, 5, null, -1, 'x'],
  [
    'tolerations',
    [{ key: 'a', operator: 'Exists' }],
    [],
    [{ operator: 'Exists', value: 'x' }],
    [{ key: 'a', effect: 'X' }],
  ],
  ['nodeSelector', { a: 'b' }, { a: '-' }],
  [
    'volumes',
    [{ name: 'v' }],
    [{ name: 'v', configMap: { name: 'a' } }],
    [{ name: 'v', secret: {} }],
    [{ name: '' }],
  ],
  ['activeDeadlineSeconds', 5, 1, undefined, 0],
  ['hostNetwork', true, false],
  ['securityContext', { runAsUser: 5 }, { runAsUser: -1 }, {}],
];

const under = (prefix: string, fields: readonly Field[]): Field[] =>
  fields.map(([path, ...values]) => [`${prefix}.${path}`, ...values]);

const TEMPLATE = {
  metadata: { labels: { a: 'x' } },
  spec: { containers: [{ name: 'c', image: 'i' }] },
};

export const KINDS: readonly FuzzKind[] = [
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    resource: 'configmaps',
    base: { data: { a: 'x' } },
    fields: [
      [
        'data',
        { a: 'y' },
        { a: 'x', b: '' },
        {},
        undefined,
        null,
        { 'a b': 'x' },
        { a: 1 },
        { '..a': 'x' },
        'x',
      ],
      ['data.c', 'x', '', null, true],
      ['binaryData', { b: 'YQ==' }, {}, { a: 'YQ==' }, { b: 'x!' }, { b: '' }],
      ['immutable', true, false, undefined, 'x'],
    ],
  },
  {
    apiVersion: 'v1',
    kind: 'Secret',
    resource: 'secrets',
    base: { data: { a: 'eA==' } },
    fields: [
      ['data', { a: 'eQ==' }, { b: '' }, undefined, { a: '!' }, { a: 5 }],
      ['stringData', { a: 'z', c: 'x' }, { a: '' }, 'x'],
      ['type', 'Opaque', 'a/b', 'kubernetes.io/tls', 'kubernetes.io/basic-auth', 5],
      ['immutable', true, undefined],
    ],
    selectors: ['type=Opaque', 'type!=Opaque'],
  },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    resource: 'pods',
    base: { spec: { containers: [{ name: 'c', image: 'i' }] } },
    fields: [
      ...under('spec', POD_SPEC),
      ['spec.nodeName', 'n', undefined, 'N_'],
      [
        'status',
        { phase: 'Running' },
        { phase: 'Failed', podIP: '10.0.0.1' },
        { conditions: [{ type: 'Ready', status: 'True' }] },
        { phase: 5 },
      ],
    ],
    subresources: ['status'],
    selectors: ['spec.nodeName=n', 'status.phase=Pending', 'spec.restartPolicy!=Never', 'spec.x=1'],
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    resource: 'services',
    base: { spec: { ports: [{ port: 80 }], selector: { a: 'x' } } },
    fields: [
      [
        'spec.ports',
        [{ port: 81 }],
        [
          { name: 'a', port: 80 },
          { name: 'b', port: 81, targetPort: 'http' },
        ],
        [{ port: 80, protocol: 'UDP' }],
        [],
        [{ port: 0 }],
        [{ port: 80 }, { port: 81 }],
        [{ port: 80, targetPort: 'x y' }],
        'x',
      ],
      ['spec.type', 'ClusterIP', 'ExternalName', 'NodePort', 'LoadBalancer', 'Other'],
      ['spec.externalName', 'example.com', '-'],
      ['spec.clusterIP', undefined, 'None', '', 'x'],
      ['spec.selector', { a: 'y' }, undefined, { a: 1 }],
      ['spec.sessionAffinity', 'None', 'ClientIP', 'x'],
      ['spec.publishNotReadyAddresses', true, 'x'],
      ['spec.externalTrafficPolicy', undefined, 'Local', 'Cluster'],
      [
        'status',
        { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } },
        { loadBalancer: { ingress: [{ ip: 'x' }] } },
      ],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    resource: 'deployments',
    base: { spec: { selector: { matchLabels: { a: 'x' } }, template: TEMPLATE } },
    fields: [
      ['spec.replicas', 2, 0, undefined, -1, 'x', 1.5],
      ['spec.paused', true, 'x'],
      [
        'spec.strategy',
        { type: 'Recreate' },
        { type: 'RollingUpdate', rollingUpdate: { maxSurge: '30%' } },
        { rollingUpdate: { maxSurge: 0, maxUnavailable: 0 } },
        { type: 'x' },
      ],
      ['spec.minReadySeconds', 5, -1],
      ['spec.progressDeadlineSeconds', 700, 0],
      ['spec.selector', { matchLabels: { a: 'x' } }, { matchLabels: { b: 'x' } }, {}, undefined],
      ['spec.template.metadata.labels', { a: 'x', c: 'z' }, {}, undefined],
      ...under('spec.template.spec', POD_SPEC),
      [
        'status',
        { replicas: 1, observedGeneration: 1 },
        { replicas: 1, readyReplicas: 2 },
        { replicas: -1 },
      ],
    ],
    subresources: ['status', 'scale'],
  },
  {
    apiVersion: 'batch/v1',
    kind: 'Job',
    resource: 'jobs',
    base: { spec: { template: { spec: { ...TEMPLATE.spec, restartPolicy: 'Never' } } } },
    fields: [
      ['spec.parallelism', 2, 0, -1],
      ['spec.completions', 3, undefined, -1],
      ['spec.backoffLimit', 1, -1, 'x'],
      ['spec.completionMode', 'Indexed', 'NonIndexed', 'x'],
      ['spec.suspend', true, false],
      ['spec.ttlSecondsAfterFinished', 5, -1],
      ['spec.activeDeadlineSeconds', 5, -1],
      ['spec.template.spec.restartPolicy', 'OnFailure', 'Always', undefined],
      [
        'status',
        { active: 1 },
        { active: -1 },
        { conditions: [{ type: 'Complete', status: 'True' }] },
      ],
    ],
    subresources: ['status'],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    resource: 'roles',
    base: { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
    fields: [
      [
        'rules',
        [],
        undefined,
        [{ apiGroups: [''], resources: ['*'], verbs: ['*'] }],
        [{ verbs: [] }],
        [{ nonResourceURLs: ['/x'], verbs: ['get'] }],
        'x',
      ],
    ],
  },
  {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    resource: 'leases',
    base: { spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } },
    fields: [
      ['spec.holderIdentity', 'b', '', undefined, 5],
      ['spec.leaseDurationSeconds', 5, 0, -1],
      ['spec.renewTime', '2020-01-01T00:00:00.000000Z', '2020-01-01T00:00:00Z', 'x'],
      ['spec.leaseTransitions', 1, -1],
    ],
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: 'Widget',
    resource: 'widgets',
    base: { spec: { color: 'red' } },
    fields: [
      ['spec.color', 'blue', 'a', '', 'RED', undefined, 5, LONG],
      ['spec.size', 2, 10, undefined, -1, 11, 'x', 1.5, null],
      ['spec.max', 3, 0, 'x'],
      ['spec.mode', 'Fast', 'Slow', 'x', null],
      ['spec.note', null, 'x', 5],
      ['spec.tags', ['a', 'b'], [], ['a', 'a'], ['a', 'b', 'c', 'd'], [1]],
      ['spec.parts', ...PARTS],
      ['spec.any', { a: { b: [1, 'x'] } }, 5, null],
      ['spec.port', 80, 'http', true, {}],
      ['spec.when', '2020-01-01T00:00:00Z', 'x'],
      ['spec.map', { a: 1 }, { b: -1 }, { a: 'x' }, {}],
      ['spec.unknown', 1],
      ['spec', undefined, null, {}, 'x'],
      ['status', { size: 1, phase: 'x' }, { size: 'x' }, { phase: 5, unknown: 1 }],
    ],
    subresources: ['status', 'scale'],
    selectors: ['spec.color=red', 'spec.color!=red', 'spec.size=1'],
  },
];

/** The CRD of the kind Widget: defaults, CEL rules, lists of all types, selectable fields and subresources. */
export const WIDGET_CRD: Json = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' },
        },
        selectableFields: [{ jsonPath: '.spec.color' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec: {
                type: 'object',
                required: ['color'],
                properties: {
                  color: { type: 'string', minLength: 1, maxLength: 10, pattern: '^[a-z]*$' },
                  size: { type: 'integer', minimum: 0, maximum: 10, default: 1 },
                  max: { type: 'integer' },
                  mode: { type: 'string', enum: ['Fast', 'Slow'], default: 'Slow' },
                  note: { type: 'string', nullable: true },
                  tags: {
                    type: 'array',
                    maxItems: 3,
                    items: { type: 'string' },
                    'x-kubernetes-list-type': 'set',
                  },
                  parts: {
                    type: 'array',
                    maxItems: 5,
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string' },
                        value: { type: 'integer', default: 5 },
                      },
                    },
                  },
                  any: { 'x-kubernetes-preserve-unknown-fields': true },
                  port: { 'x-kubernetes-int-or-string': true },
                  when: { type: 'string', format: 'date-time' },
                  map: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
                },
                'x-kubernetes-validations': [
                  {
                    rule: '!has(self.max) || self.size <= self.max',
                    message: 'size is greater than max',
                  },
                  {
                    rule: "self.mode != 'Fast' || self.color != 'red'",
                    reason: 'FieldValueForbidden',
                    fieldPath: '.mode',
                  },
                  {
                    rule: "oldSelf.color != 'blue' || self.color == 'blue'",
                    messageExpression: "'color was ' + oldSelf.color",
                  },
                ],
              },
              status: {
                type: 'object',
                properties: { size: { type: 'integer' }, phase: { type: 'string' } },
              },
            },
          },
        },
      },
    ],
  },
};

/** Returns random numbers in [0, 1) that follow from the seed. */
export function randomFrom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns a sequence of `count` requests in one namespace. Most are about one kind and three names. */
export function sequence(seed: number, count: number): FuzzRequest[] {
  return new Generator(randomFrom(seed)).sequence(count);
}

class Generator {
  readonly #random: () => number;

  constructor(random: () => number) {
    this.#random = random;
  }

  sequence(count: number): FuzzRequest[] {
    const kinds = [this.#one(KINDS), this.#one(KINDS)];
    return Array.from({ length: count }, () => this.#request(this.#one(kinds)));
  }

  #request(kind: FuzzKind): FuzzRequest {
    const root = kind.apiVersion.includes('/') ? '/apis/' : '/api/';
    const list = `${root}${kind.apiVersion}/namespaces/$ns/${kind.resource}`;
    const name = this.#one(['a', 'a', 'a', 'b', 'c']);
    const subject = `${list}/${name}`;
    const part = this.#chance(0.25) && kind.subresources ? `/${this.#one(kind.subresources)}` : '';
    const path = `${subject}${part}`;
    const roll = this.#random();
    if (roll < 0.25) return this.#create(kind, list, name);
    if (roll < 0.4) return this.#update(kind, path, subject, name, part);
    if (roll < 0.75) return this.#patch(kind, path, subject, name, part);
    if (roll < 0.83) return this.#delete(list, subject);
    if (roll < 0.88) return { method: 'GET', path, subject };
    return this.#list(kind, list);
  }

  #create(kind: FuzzKind, list: string, name: string): FuzzRequest {
    const body = this.#object(kind, name, '');
    if (this.#chance(0.05)) {
      delete body.metadata?.name;
      body.metadata = { ...body.metadata, generateName: `made${this.#below(1000)}-` };
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
    if (this.#chance(0.6)) body.metadata = { ...body.metadata, resourceVersion: '$rv' };
    return { method: 'PUT', path: `${path}${this.#writeQuery()}`, subject, body };
  }

  #patch(kind: FuzzKind, path: string, subject: string, name: string, part: string): FuzzRequest {
    const type = this.#one(['merge', 'json', 'strategic', 'apply', 'apply']);
    const patch = { method: 'PATCH' as const, subject };
    if (type === 'apply') {
      const manager = this.#one(['m1', 'm2', 'm3']);
      const force = this.#chance(0.4) ? '&force=true' : '';
      const body = this.#object(kind, name, part);
      return {
        ...patch,
        path: `${path}?fieldManager=${manager}${force}`,
        type: 'application/apply-patch+yaml',
        body,
      };
    }
    if (type === 'json') {
      const body = Array.from({ length: 1 + this.#below(3) }, () => this.#operation(kind, part));
      return {
        ...patch,
        path: `${path}${this.#writeQuery()}`,
        type: 'application/json-patch+json',
        body,
      };
    }
    const body: Json = {};
    this.#mutate(body, kind, part, 1 + this.#below(2), null);
    return {
      ...patch,
      path: `${path}${this.#writeQuery()}`,
      type: `application/${type === 'merge' ? '' : 'strategic-'}merge-patch+json`,
      body,
    };
  }

  #operation(kind: FuzzKind, part: string): Json {
    const [field, ...values] = this.#one(this.#fieldsOf(kind, part));
    const path = `/${field.replaceAll('.', '/')}`;
    const op = this.#one(['add', 'add', 'replace', 'replace', 'remove', 'test', 'copy']);
    if (op === 'remove') return { op, path };
    if (op === 'copy')
      return { op, from: '/metadata/labels', path: this.#one(['/metadata/annotations', path]) };
    return { op, path, value: this.#value(values) ?? null };
  }

  #delete(list: string, subject: string): FuzzRequest {
    if (this.#chance(0.1)) {
      const query = this.#one([
        '',
        '?labelSelector=a%3Dx',
        '?limit=1',
        '?dryRun=All',
        '?fieldSelector=metadata.name%3Da',
      ]);
      return { method: 'DELETE', path: `${list}${query}`, subject: list };
    }
    const query = this.#one([
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
    const body = this.#one<Json>([
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

  #list({ selectors = [] }: FuzzKind, list: string): FuzzRequest {
    const query = new URLSearchParams();
    if (this.#chance(0.3))
      query.set(
        'labelSelector',
        this.#one(['a=x', 'a', '!a', 'a in (x, y)', 'a!=x', 'a,b', 'a=', 'a in x', 'a>x', 'a=x,']),
      );
    if (this.#chance(0.3))
      query.set(
        'fieldSelector',
        this.#one([
          'metadata.name=a',
          'metadata.name!=a',
          'metadata.namespace=$ns',
          'x=y',
          'metadata.name',
          ...selectors,
        ]),
      );
    if (this.#chance(0.3)) query.set('limit', this.#one(['1', '2', '0', '-1', 'x']));
    if (this.#chance(0.2)) query.set('continue', this.#one(['$continue', '$continue', 'x']));
    if (this.#chance(0.2)) query.set('resourceVersion', this.#one(['0', 'x']));
    if (this.#chance(0.1))
      query.set('resourceVersionMatch', this.#one(['NotOlderThan', 'Exact', 'x']));
    return { method: 'GET', path: `${list}?${query.toString()}`, subject: list };
  }

  /** Returns an object with up to three fields of other values. For `/scale`, it is a Scale. */
  #object(kind: FuzzKind, name: string, part: string): Json {
    const { apiVersion, base } = kind;
    if (part === '/scale') {
      const scale = {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name, namespace: '$ns' },
        spec: { replicas: this.#one<Json>([0, 1, 2, 3, -1, 'x', undefined]) },
      };
      if (this.#chance(0.3)) this.#mutate(scale, { ...kind, fields: [] }, '', 1);
      return scale;
    }
    const object = { apiVersion, kind: kind.kind, metadata: { name }, ...structuredClone(base) };
    this.#mutate(object, kind, part, this.#below(4));
    return object;
  }

  #mutate(object: Json, kind: FuzzKind, part: string, count: number, absent?: null): void {
    for (let index = 0; index < count; index++) {
      const [field, ...values] = this.#one(this.#fieldsOf(kind, part));
      setAt(object, field.split('.'), this.#value(values) ?? (absent === null ? null : undefined));
    }
  }

  #fieldsOf({ fields }: FuzzKind, part: string): readonly Field[] {
    const status = fields.filter(([path]) => path === 'status');
    if (part === '/status' && this.#chance(0.7) && status.length > 0) return status;
    return this.#chance(0.25) || fields.length === 0 ? METADATA : fields;
  }

  /** Prefers the first values, which are valid. */
  #value(values: readonly Json[]): Json {
    return structuredClone(values[Math.floor(this.#random() ** 1.7 * values.length)]);
  }

  #writeQuery(): string {
    if (this.#chance(0.7)) return '';
    return this.#one([
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

  #one<T>(values: readonly T[]): T {
    return values[this.#below(values.length)] as T;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #chance(probability: number): boolean {
    return this.#random() < probability;
  }
}

function setAt(object: Json, [field = '', ...rest]: readonly string[], value: Json): void {
  if (rest.length > 0) {
    if (typeof object[field] !== 'object' || object[field] === null || Array.isArray(object[field]))
      object[field] = {};
    setAt(object[field], rest, value);
  } else if (value === undefined) delete object[field];
  else object[field] = value;
}
