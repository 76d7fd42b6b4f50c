import type { HttpHandler } from '../../src/util/http.ts';
import { PERMISSIONS } from './access-kinds.ts';
import { acceptedReason } from './accepted.ts';
import { GADGET_CRD, WIDGET_CRD } from './crds.ts';
import { CHANGED, DENIED } from './kinds.ts';
import type { FuzzRequest, Json } from './requests.ts';
import type { Shown } from './session.ts';
import { Session, canonical } from './session.ts';

/** A sequence whose last request the two servers answer differently. */
export interface Difference {
  readonly requests: readonly FuzzRequest[];
  readonly ours: Shown;
  readonly real: Shown;
  /** Method, resource and first field that differs: equal for differences with one cause. */
  readonly signature: string;
}

export interface FuzzOptions {
  readonly sequences: Iterable<readonly FuzzRequest[]>;
  /**
   * Sequences that run at the same time.
   * @default 12
   */
  readonly concurrency?: number;
  /** Maximum number of different differences; the comparison ends when it is reached. */
  readonly limit: number;
  /**
   * Receives each difference as soon as it is found.
   * @default none
   */
  readonly report?: (difference: Difference) => void;
}

/**
 * Sends the same sequences of requests to two servers. Returns the first difference of each signature, shortened,
 * except those that are accepted.
 */
export async function compareServers(
  ours: HttpHandler,
  real: HttpHandler,
  { sequences, concurrency = 12, limit, report }: FuzzOptions,
): Promise<readonly Difference[]> {
  for (const handle of [ours, real]) {
    for (const crd of [WIDGET_CRD, GADGET_CRD]) await install(handle, crd);
    await installRules(handle);
  }
  const found = new Map<string, Difference>();
  const started = Date.now();
  let index = 0;
  // Shared: each worker takes the next sequence.
  const remaining = sequences[Symbol.iterator]();
  const work = async () => {
    for (let next = remaining.next(); !next.done && found.size < limit; next = remaining.next()) {
      const requests = next.value;
      const number = index++;
      for (let first = 0; first < requests.length;) {
        const rest = requests.slice(first);
        const difference = await firstDifference(
          ours,
          real,
          rest,
          `fuzz-${started}-${number}-${first}`,
        );
        if (!difference) break;
        first += difference.requests.length;
        if (found.has(difference.signature) || acceptedReason(difference)) continue;
        found.set(difference.signature, difference);
        const short = await shortened(ours, real, difference);
        found.set(difference.signature, short);
        report?.(short);
      }
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return [...found.values()];
}

async function install(handle: HttpHandler, crd: Json): Promise<void> {
  const session = new Session(handle, 'x');
  const root = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await session.send({ method: 'POST', path: root, subject: root, body: crd });
  const { group, names } = crd.spec;
  const path = `/apis/${group}/v1/namespaces/default/${names.plural}`;
  for (let attempt = 0; attempt < 200; attempt++) {
    const { status } = await session.send({ method: 'GET', path, subject: path });
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${path} is not served`);
}

/** The permissions of the users, and policies that deny or change objects with a label. */
async function installRules(handle: HttpHandler): Promise<void> {
  const session = new Session(handle, 'x');
  const create = (path: string, kind: string, body: object, name = 'fuzz') => {
    const [group, version] = path.split('/').slice(2);
    const object = { apiVersion: `${group}/${version}`, kind, metadata: { name }, ...body };
    return session.send({ method: 'POST', path, subject: path, body: object });
  };
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const apiGroup = 'rbac.authorization.k8s.io';
  for (const [name, rules] of Object.entries(PERMISSIONS)) {
    await create(`${rbac}/clusterroles`, 'ClusterRole', { rules }, name);
    const binding = {
      roleRef: { apiGroup, kind: 'ClusterRole', name },
      subjects: [{ apiGroup, kind: 'User', name }],
    };
    await create(`${rbac}/clusterrolebindings`, 'ClusterRoleBinding', binding, name);
  }
  const admission = '/apis/admissionregistration.k8s.io/v1';
  const rule = {
    apiGroups: ['*'],
    apiVersions: ['*'],
    operations: ['CREATE', 'UPDATE'],
    resources: ['configmaps', 'widgets', 'gadgets', 'leases', 'deployments', 'ingresses'],
  };
  const constraints = (label: string) => ({
    matchConstraints: {
      resourceRules: [rule],
      objectSelector: { matchExpressions: [{ key: label, operator: 'Exists' }] },
    },
  });
  await create(`${admission}/validatingadmissionpolicies`, 'ValidatingAdmissionPolicy', {
    spec: { ...constraints(DENIED), validations: [{ expression: 'false', message: 'denied' }] },
  });
  const change = `Object{metadata: Object.metadata{annotations: {'changed': 'yes'}}}`;
  await create(`${admission}/mutatingadmissionpolicies`, 'MutatingAdmissionPolicy', {
    spec: {
      ...constraints(CHANGED),
      reinvocationPolicy: 'Never',
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: change } }],
    },
  });
  for (const [plural, kind, spec] of [
    [
      'validatingadmissionpolicybindings',
      'ValidatingAdmissionPolicyBinding',
      { validationActions: ['Deny'] },
    ],
    ['mutatingadmissionpolicybindings', 'MutatingAdmissionPolicyBinding', {}],
  ] as const) {
    await create(`${admission}/${plural}`, kind, { spec: { policyName: 'fuzz', ...spec } });
  }
  await untilEnforced(session);
}

/** Waits until both policies act on new objects. */
async function untilEnforced(session: Session): Promise<void> {
  const path = '/api/v1/namespaces/default/configmaps';
  for (let attempt = 0; attempt < 400; attempt++) {
    const labelled = (label: string) =>
      session.send({
        method: 'POST',
        path: `${path}?dryRun=All`,
        subject: path,
        body: { metadata: { name: 'probe', labels: { [label]: 'x' } } },
      });
    const denied = await labelled(DENIED);
    const changed = await labelled(CHANGED);
    if (denied.status === 422 && changed.body.metadata?.annotations) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('The admission policies are not enforced');
}

/** Sends the requests to a new namespace of both servers, up to the first difference. Then compares the watches. */
async function firstDifference(
  ours: HttpHandler,
  real: HttpHandler,
  requests: readonly FuzzRequest[],
  namespace: string,
): Promise<Difference | undefined> {
  const sides = [new Session(ours, namespace), new Session(real, namespace)] as const;
  const [left, right] = sides;
  const path = '/api/v1/namespaces';
  const body = { metadata: { name: namespace } };
  await Promise.all(sides.map((side) => side.send({ method: 'POST', path, subject: path, body })));
  try {
    for (const [index, request] of requests.entries()) {
      const [one, other] = await Promise.all([left.send(request), right.send(request)]);
      const place = differenceOf(one, other, '');
      if (place === undefined) continue;
      const part = request.path.includes('/status')
        ? 'status'
        : request.path.includes('/scale')
          ? 'scale'
          : '';
      const type = request.type?.replace(/application\/|-patch.*/g, '') ?? '';
      const accept = /as=\w+|yaml/.exec(request.accept ?? '')?.[0] ?? '';
      return {
        requests: requests.slice(0, index + 1),
        ours: one,
        real: other,
        signature: [
          request.watched === undefined ? request.method : 'WATCH',
          resourceOf(request.path),
          part,
          type,
          accept,
          `${one.status}/${other.status}`,
          place.replace(/\d+/g, '#'),
          request.field,
        ]
          .filter(Boolean)
          .join(' '),
      };
    }
    return await watchDifference(left, right, requests);
  } finally {
    await Promise.all(sides.map((side) => side.close()));
  }
}

/** Time within which both servers send the events of all writes. */
const EVENTS_MS = 1000;

async function watchDifference(
  left: Session,
  right: Session,
  requests: readonly FuzzRequest[],
): Promise<Difference | undefined> {
  const deadline = Date.now() + EVENTS_MS;
  const same = () =>
    left.watches.every(
      ({ events }, index) => events.length === right.watches[index]?.events.length,
    );
  while (!same() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 10));
  for (const [index, { path, events }] of left.watches.entries()) {
    const others = right.watches[index]?.events ?? [];
    const shown = [left.shown(events), right.shown(others)] as const;
    const place = differenceOf(...shown, '');
    if (place === undefined) continue;
    const [ours, real] = shown.map((body): Shown => ({ status: 200, warning: '', body }));
    if (!ours || !real) return undefined;
    const at = place.replace(/\d+/g, '#');
    return { requests, ours, real, signature: `WATCH ${resourceOf(path)} events ${at}` };
  }
  return undefined;
}

function resourceOf(path: string): string {
  const [, resource = ''] =
    /\/v\d\w*\/(\w+)(?=$|[/?])/.exec(path.replace('/namespaces/$ns', '')) ?? [];
  return resource;
}

/** Removes requests that the difference does not need. */
async function shortened(
  ours: HttpHandler,
  real: HttpHandler,
  difference: Difference,
): Promise<Difference> {
  let best = difference;
  for (let index = best.requests.length - 1; index >= 0; index--) {
    const requests = best.requests.filter((_, each) => each !== index);
    const namespace = `fuzz-${Math.random().toString(36).slice(2)}`;
    const again = await firstDifference(ours, real, requests, namespace);
    if (again?.signature === difference.signature && again.requests.length === requests.length) {
      best = again;
    }
  }
  return best;
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

/** Returns a difference as text: its requests, and the members in which the answers differ. */
export function describe({ signature, requests, ours, real }: Difference): string {
  const lines = requests.map(({ method, path, type, accept, body, user }) =>
    [
      user && `as ${user}:`,
      method,
      path,
      type,
      accept && `(${accept})`,
      body && JSON.stringify(body),
    ]
      .filter(Boolean)
      .join(' '),
  );
  return [`## ${signature}`, ...lines, ...membersThatDiffer(ours, real, '')].join('\n');
}

function membersThatDiffer(left: Json, right: Json, path: string): string[] {
  if (left === right) return [];
  if (typeof left !== 'object' || typeof right !== 'object' || !left || !right) {
    const [ours, real] = [left, right].map((value) => JSON.stringify(canonical(value)));
    return [`  ours ${path} ${ours}`, `  real ${path} ${real}`];
  }
  const keys = [...new Set([...Object.keys(left), ...Object.keys(right)])].sort();
  return keys.flatMap((key) => membersThatDiffer(left[key], right[key], `${path}.${key}`));
}
