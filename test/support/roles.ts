import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Client } from '../../src/client/client.ts';
import { applyManifests } from '../../src/client/apply/apply.ts';
import type { ManifestObject } from '../../src/client/apply/manifest.ts';
import { parseTarget, requestInfo } from '../../src/apiserver/request/request-info.ts';
import type { RequestInfo } from '../../src/apiserver/request/request-info.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';

export interface PolicyRule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly resourceNames?: string[];
  readonly verbs: string[];
}

export interface Grant {
  readonly user: string;
  /** Absent for the whole cluster. */
  readonly namespace?: string;
  readonly rules: readonly PolicyRule[];
}

/** A document of hack/deploy, with the fields that tests use. */
export interface Manifest extends ManifestObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly rules?: readonly PolicyRule[];
}

/** Returns the documents of a file of hack/deploy. */
export function manifestsOf(file: string): Manifest[] {
  const text = readFileSync(join(import.meta.dirname, '../../hack/deploy', file), 'utf8');
  return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
}

/** Applies objects of any kind. @throws {assert.AssertionError} if the server rejects one */
export async function applyObjects(
  client: Client,
  objects: readonly ManifestObject[],
): Promise<void> {
  const manifests = objects.map((object, index) => ({
    place: { source: 'test', document: index + 1, line: 1 },
    object,
  }));
  for await (const result of applyManifests(client, manifests, { fieldManager: 'admin' })) {
    if (result.kind === 'rejected') assert.fail(result.rejection.message);
  }
}

/** Binds a new role with the rules to a user, in one namespace or in the whole cluster. */
export async function grant(
  client: Client,
  name: string,
  { user, namespace, rules }: Grant,
): Promise<void> {
  const metadata = { name, ...(namespace !== undefined && { namespace }) };
  const kind = namespace === undefined ? 'ClusterRole' : 'Role';
  const apiGroup = 'rbac.authorization.k8s.io';
  const apiVersion = `${apiGroup}/v1`;
  await applyObjects(client, [
    { apiVersion, kind, metadata, rules },
    {
      apiVersion,
      kind: `${kind}Binding`,
      metadata,
      roleRef: { apiGroup, kind, name },
      subjects: [{ apiGroup, kind: 'User', name: user }],
    },
  ]);
}

/** Returns a token of an existing ServiceAccount. */
export async function serviceAccountToken(
  client: Client,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<string> {
  const { status } = (await client.raw({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
  })) as { status: { token: string } };
  return status.token;
}

export function rulesOf(manifests: readonly Manifest[]): PolicyRule[] {
  return manifests.flatMap(({ rules = [] }) => rules);
}

/** Returns the permissions of rules: `patch demo.mark8s.io/counts/status`. */
export function permissionsOf(rules: readonly PolicyRule[]): string[] {
  const lines = rules.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) => verbs.map((verb) => `${verb} ${group}/${resource}`)),
    ),
  );
  return [...new Set(lines)].toSorted();
}

/** Reports whether RBAC rules allow a request. */
export function allows(rules: readonly PolicyRule[], info: RequestInfo): boolean {
  const name = nameOf(info);
  return rules.some(
    ({ apiGroups, resources, resourceNames, verbs }) =>
      verbs.includes(info.verb) &&
      apiGroups.includes(info.group) &&
      resources.includes(resourceOf(info)) &&
      (resourceNames === undefined || (name !== undefined && resourceNames.includes(name))),
  );
}

/** Returns the name of the object in a request, or in the field selector of a list or watch. */
function nameOf({ name, query }: RequestInfo): string | undefined {
  return name ?? /^metadata\.name=([^,]+)$/.exec(query.get('fieldSelector') ?? '')?.[1];
}

/** Records the permissions that requests need. */
export class Demand {
  /** Permissions as in `permissionsOf`. */
  readonly #permissions = new Set<string>();
  /** Non-resource paths. */
  readonly otherPaths = new Set<string>();
  /** Namespaces of requests. The empty string means all namespaces. */
  readonly namespaces = new Set<string>();
  /** Messages of rejected requests. */
  readonly refused: string[] = [];
  /** If false, `sendInitialEvents` is rejected, as by older servers. */
  canStreamLists = true;
  /** Called for each request before it is forwarded. */
  before: (info: RequestInfo) => Promise<void> = () => Promise.resolve();

  get permissions(): string[] {
    return [...this.#permissions].toSorted();
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const info = requestInfo(request.method, parseTarget(request.path));
      if (info) {
        this.#permissions.add(`${info.verb} ${info.group}/${resourceOf(info)}`);
        this.namespaces.add(info.namespace ?? '');
        await this.before(info);
      } else {
        this.otherPaths.add(request.path);
      }
      const isRefused = !this.canStreamLists && info?.query.has('sendInitialEvents');
      const response = isRefused ? refusal() : await handler(request);
      if (response.status === 403) this.refused.push(`${request.method} ${request.path}`);
      return response;
    };
}

function resourceOf({ resource, subresource }: RequestInfo): string {
  return subresource === undefined ? resource : `${resource}/${subresource}`;
}

/** The response of a server that does not support the parameter. */
function refusal(): HttpResponse {
  const message =
    'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled';
  const status = {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'Invalid',
    message,
  };
  return {
    status: 422,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield Buffer.from(JSON.stringify({ ...status, code: 422 }));
    })(),
  };
}
