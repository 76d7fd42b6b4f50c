import { randomUUID } from 'node:crypto';
import { apiGroupOf } from '../api/resource.ts';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { ApiError } from '../api/api-error.ts';
import { AUTHENTICATED } from '../api/user.ts';
import type { User } from '../api/user.ts';
import type { HttpHandler, HttpRequest, HttpResponse } from '../util/http.ts';
import { isRecord } from '../util/values.ts';
import { permissionOf, permissionsOf } from './role-rules.ts';
import type { RoleRule } from './role-rules.ts';

/** Environment variable with the folder for the observed permissions, which `generate rbac` sets. */
export const OBSERVED_ROLES = 'CRD_CONTROLLER_OBSERVED_ROLES';

/** The permissions that the tests of one process needed in one file. */
export interface ObservedPermissions {
  readonly file: string;
  readonly permissions: readonly string[];
}

/** Server that records the permissions of requests: `ApiServer`. */
export interface RecordingServer {
  readonly handler: HttpHandler;
  /** Returns a handler whose requests are those of a user. */
  handlerFor(user: User): HttpHandler;
  /** Returns the rules that permit all requests of a user so far. */
  observedRole(user: string): { readonly rules: readonly RoleRule[] };
}

interface RoleManifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly rules?: readonly RoleRule[];
  readonly metadata: { readonly name: string };
  readonly subjects?: readonly Subject[];
}

interface Subject {
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
}

/**
 * The ClusterRole that a controller is installed with, in tests of the controller. The controller's requests have the
 * permissions that the manifests give its ServiceAccount and no others. `verify` fails if the role grants more or less
 * than the tests needed. `crd-controller generate rbac` writes the role. Controllers with roles of their own can run on
 * one server: each role has a user of its own, with the name of the ServiceAccount and of the role.
 *
 * @experimental
 */
export class TestedRole {
  readonly #file: string;
  readonly #granted: ReadonlySet<string>;
  readonly #grantedByOthers: ReadonlySet<string>;
  readonly #manifests: readonly RoleManifest[];
  readonly #name: string;
  readonly #user: string;
  readonly #denied = new Set<string>();
  readonly #recording: string | undefined;
  readonly #servers = new Set<RecordingServer>();
  /** Owners of created objects: `apps/v1 Deployment`. */
  readonly #owners = new Set<string>();
  /** Permissions to patch the kinds of created objects that have a controller and a field manager, as `OwnedObjects` creates them. */
  readonly #patches = new Set<string>();

  /**
   * @param file manifests with the ClusterRole, and its binding to a ServiceAccount
   * @param others files with the other ClusterRoles and bindings of the ServiceAccount
   * @throws {Error} if the file does not have exactly one ClusterRole, or no binding to a ServiceAccount
   */
  constructor(file: string | URL, others: readonly (string | URL)[] = []) {
    this.#file = pathOf(file);
    const own = manifestsIn(this.#file);
    const further = others.flatMap((other) => manifestsIn(pathOf(other)));
    const roles = own.filter(({ kind }) => kind === 'ClusterRole');
    if (roles.length !== 1)
      throw new Error(`${this.#file} has ${roles.length} ClusterRoles instead of one`);
    const account = own
      .flatMap(({ subjects = [] }) => subjects)
      .find(({ kind }) => kind === 'ServiceAccount');
    if (!account) throw new Error(`${this.#file} binds no ServiceAccount`);
    this.#name = roles[0]?.metadata.name ?? '';
    this.#user = `system:serviceaccount:${account.namespace}:${account.name}:${this.#name}`;
    this.#manifests = [...own, ...further].map((manifest) => this.#forUser(manifest, account));
    this.#granted = permissionsOf(roles.flatMap(({ rules }) => rules ?? []));
    this.#grantedByOthers = permissionsOf(further.flatMap(({ rules }) => rules ?? []));
    this.#recording = process.env[OBSERVED_ROLES];
  }

  /** Name of the user whose requests the handlers send, for faults: `failNext({ user: role.user }, 503)`. */
  get user(): string {
    return this.#user;
  }

  /**
   * Creates the roles and bindings on the server of a test, and returns a handler for the client of the
   * controller. A request without permission is rejected with 403, except while `generate rbac` runs the tests.
   *
   * @param onDenied receives a line for each method and path that was rejected with 403, once for this role: the
   * `context.diagnostic` of a test prints it
   * @throws {Error} if the server rejects a manifest
   */
  async handler(
    server: RecordingServer,
    onDenied?: (message: string) => void,
  ): Promise<HttpHandler> {
    this.#servers.add(server);
    const isRecording = this.#recording !== undefined;
    const manifests = isRecording ? everythingFor(this.#user, this.#name) : this.#manifests;
    for (const manifest of manifests) await create(server, manifest);
    // Not by impersonation, because the controller may impersonate users itself.
    const handler = server.handlerFor({ name: this.#user, groups: [AUTHENTICATED] });
    return async (request) => {
      if (request.method !== 'GET' && request.method !== 'DELETE') this.#noteOwners(request);
      const response = await handler(request);
      if (response.status !== 403) return response;
      const text = await textOf(response);
      this.#reportDenied(request, text, onDenied);
      return { ...response, body: bodyOf(text) };
    };
  }

  #reportDenied(
    { method, path }: HttpRequest,
    text: string,
    onDenied?: (message: string) => void,
  ): void {
    const status: unknown = JSON.parse(text);
    const error = ApiError.fromStatus(isRecord(status) ? status : {});
    // No role permits writing to a namespace that is being deleted.
    if (error.hasCause('NamespaceTerminating')) return;
    const [message = '', ...rules] = error.message.split('\n');
    // Besides the permission for the request itself, the server checks those that the object grants, for example.
    const isRequest = / cannot (?!impersonate)\S+ (resource|path) /.test(message);
    // A role such as `admin` grants 70 of them.
    const others = rules.length > 1 ? ` and ${rules.length - 1} more` : '';
    const why = isRequest ? '' : `: ${[message, ...rules.slice(0, 1)].join(' ')}${others}`;
    const call = `${method} ${path.replace(/\?.*/, '')}${why}`;
    if (this.#denied.has(call)) return;
    this.#denied.add(call);
    onDenied?.(`403: ${relative('.', this.#file)} does not permit ${call}`);
  }

  /** Returns a manifest that binds the user of this role instead of the ServiceAccount. */
  #forUser(manifest: RoleManifest, account: Subject): RoleManifest {
    const { metadata, subjects } = manifest;
    if (!subjects) return manifest;
    const isAccount = ({ kind, namespace, name }: Subject) =>
      kind === account.kind && namespace === account.namespace && name === account.name;
    const user = { apiGroup: RBAC, kind: 'User', name: this.#user };
    return {
      ...manifest,
      metadata: { ...metadata, name: `${metadata.name}:${this.#name}` },
      subjects: subjects.map((subject) => (isAccount(subject) ? user : subject)),
    };
  }

  /**
   * Compares the role with the requests of all tests so far. Call it in the last test of a file. A `watch` needs
   * `list` too, because an informer lists again if it cannot resume. A `create` of a kind with an informer needs `get`:
   * if the response of the create was lost, the retry reads the object before the cache shows it. `OwnedObjects` patches each
   * object that it created once after a restart, also if no test restarts while there is one. An owner reference that blocks
   * deletion needs `update` of the owner's `finalizers`, which OpenShift checks.
   *
   * @throws {Error} that lists the missing and the superfluous permissions
   */
  async verify(): Promise<void> {
    const needed = (await this.#needed()).difference(this.#grantedByOthers);
    if (this.#recording !== undefined) {
      mkdirSync(this.#recording, { recursive: true });
      const observed: ObservedPermissions = { file: this.#file, permissions: [...needed] };
      writeFileSync(join(this.#recording, `${randomUUID()}.json`), JSON.stringify(observed));
      return;
    }
    const missing = needed.difference(this.#granted);
    const superfluous = this.#granted.difference(needed);
    if (missing.size + superfluous.size === 0) return;
    const lines = [
      `The ClusterRole in ${relative('.', this.#file)} is not the one that the tests need.`,
      ...[...missing].map((permission) => `  missing: ${permission}`),
      ...[...superfluous].map((permission) => `  not needed: ${permission}`),
      'To write its rules from the requests of the tests: crd-controller generate rbac',
    ];
    throw new Error(lines.join('\n'));
  }

  async #needed(): Promise<Set<string>> {
    const needed = new Set<string>();
    for (const server of this.#servers) {
      for (const permission of permissionsOf(server.observedRole(this.#user).rules)) {
        needed.add(permission);
        if (permission.startsWith('watch ')) needed.add(permission.replace('watch', 'list'));
      }
      for (const permission of needed) {
        const place = permission.replace(/^create /, '');
        if (place !== permission && needed.has(`list ${place}`)) needed.add(`get ${place}`);
      }
      for (const patch of this.#patches)
        if (needed.has(patch.replace(/^patch /, 'list '))) needed.add(patch);
      for (const owner of this.#owners) {
        const [apiVersion = '', kind = ''] = owner.split(' ');
        const plural = await pluralOf(server, apiVersion, kind);
        if (plural === undefined) continue;
        const group = apiGroupOf(apiVersion);
        needed.add(permissionOf('update', group, `${plural}/finalizers`));
      }
    }
    return needed;
  }

  #noteOwners({ method, path, body }: HttpRequest): void {
    if (body === undefined) return;
    const object: unknown = JSON.parse(
      typeof body === 'string' ? body : Buffer.from(body).toString(),
    );
    const { ownerReferences } =
      isRecord(object) && isRecord(object['metadata']) ? object['metadata'] : {};
    if (!Array.isArray(ownerReferences)) return;
    for (const { apiVersion, kind, blockOwnerDeletion } of ownerReferences)
      if (blockOwnerDeletion) this.#owners.add(`${apiVersion} ${kind}`);
    const { pathname, searchParams } = new URL(path, 'https://server');
    const isOwned = method === 'POST' && searchParams.has('fieldManager');
    if (!isOwned || !ownerReferences.some(({ controller }) => controller === true)) return;
    const group = isRecord(object) ? apiGroupOf(String(object['apiVersion'])) : '';
    const plural = pathname.slice(pathname.lastIndexOf('/') + 1);
    const patch = permissionOf('patch', group, plural);
    if (!NEVER_PATCHED.has(patch)) this.#patches.add(patch);
  }
}

/** Kinds that `OwnedObjects` only creates. */
const NEVER_PATCHED: ReadonlySet<string> = new Set([
  permissionOf('patch', 'batch', 'jobs'),
  permissionOf('patch', '', 'pods'),
]);

function pathOf(file: string | URL): string {
  return file instanceof URL ? fileURLToPath(file) : file;
}

function manifestsIn(file: string): RoleManifest[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((each) => each.toJS() as RoleManifest);
}

const RBAC = 'rbac.authorization.k8s.io';

/** Returns a role with all permissions, and its binding to a user. */
function everythingFor(user: string, role: string): RoleManifest[] {
  const common = { apiVersion: `${RBAC}/v1`, metadata: { name: `tested-role-everything:${role}` } };
  const rules = [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ];
  const roleRef = { apiGroup: RBAC, kind: 'ClusterRole', name: common.metadata.name };
  const subjects = [{ apiGroup: RBAC, kind: 'User', name: user }];
  return [
    { ...common, kind: 'ClusterRole', rules },
    Object.assign({ ...common, kind: 'ClusterRoleBinding', subjects }, { roleRef }),
  ];
}

async function create(server: RecordingServer, manifest: RoleManifest): Promise<void> {
  const { kind } = manifest;
  const plural = `${kind.toLowerCase()}s`;
  const { status, text } = await exchange(server, {
    method: 'POST',
    path: `/apis/${manifest.apiVersion}/${plural}`,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(manifest),
  });
  // Another role of the same test has created it.
  if (status === 409) return;
  if (status !== 201) throw new Error(`The server rejected a ${kind}: ${text}`);
}

/** Returns the plural of a kind, or undefined if the server does not have it. */
async function pluralOf(
  server: RecordingServer,
  apiVersion: string,
  kind: string,
): Promise<string | undefined> {
  const path = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { status, text } = await exchange(server, { method: 'GET', path, headers: {} });
  if (status !== 200) return undefined;
  const { resources } = JSON.parse(text) as {
    readonly resources: readonly { readonly kind: string; readonly name: string }[];
  };
  return resources.find((each) => each.kind === kind && !each.name.includes('/'))?.name;
}

async function exchange(
  { handler }: RecordingServer,
  request: HttpRequest,
): Promise<{ readonly status: number; readonly text: string }> {
  const response = await handler(request);
  return { status: response.status, text: await textOf(response) };
}

async function* bodyOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

async function textOf({ body }: HttpResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
