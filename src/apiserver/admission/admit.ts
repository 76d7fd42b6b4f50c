import { isDryRun } from '../request/request-info.ts';
import { actionOf } from '../auth/access.ts';
import type { AdmissionChain, AdmittedOperation, Attributes } from './attributes.ts';
import type { User } from '../../api/user.ts';
import type { ReceivedRequest } from '../request/received-request.ts';
import { toRequestedVersion } from '../request/negotiation.ts';
import type { Action, Authorizer, Decision } from '../../api/policy-rule.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import type { ApiObject, StoredObject } from '../objects/resource-definition.ts';
import { shallowCopy } from '../objects/resource-definition.ts';
import { goObject } from '../request/object-decoder.ts';
import { requireCurrent } from '../strategy/before-update.ts';
import { withDefaults } from '../strategy/defaults.ts';
import { accessDenied } from '../objects/status-error.ts';

/** A request that passes admission. */
export interface AdmittedRequest extends ReceivedRequest {
  /** User that sends the request. */
  readonly user: User;
  /**
   * Whether admission has already run, for an object of another kind (Scale).
   * @default false
   */
  readonly admitted?: boolean;
  readonly backend: { readonly admission: AdmissionChain; readonly access: Authorizer };
}

export interface AdmittedObjects {
  readonly object?: StoredObject | undefined;
  readonly oldObject?: StoredObject | undefined;
  /** Kind of the objects, if it is not the kind of the resource. */
  readonly kind?: Attributes['kind'];
  /** @default the options in the query */
  readonly options?: object;
}

export function attributesOf(
  request: AdmittedRequest,
  operation: AdmittedOperation,
  { object, oldObject, kind = request.definition, options }: AdmittedObjects,
): Attributes {
  const { definition, info, user, warnings, annotations } = request;
  const name = info.name ?? object?.metadata.name ?? oldObject?.metadata.name ?? '';
  const isNamespace = definition.group === '' && definition.plural === 'namespaces';
  return {
    operation,
    definition,
    subresource: info.subresource ?? '',
    kind,
    namespace: (isNamespace ? name : info.namespace) ?? '',
    name,
    object,
    oldObject,
    user,
    dryRun: isDryRun(request),
    options: options ?? optionsOf(request, operation),
    signal: request.request.signal,
    warnings,
    annotations,
  };
}

const META = 'meta.k8s.io/v1';

/** Returns the options in the query of a write, as an object of `meta.k8s.io`. A patch creates or updates. */
function optionsOf({ info }: AdmittedRequest, operation: AdmittedOperation): object {
  const { query } = info;
  const texts = ['fieldManager', 'fieldValidation'].flatMap((name) => {
    const value = query.get(name);
    return value ? [[name, value]] : [];
  });
  const dryRun = query.getAll('dryRun').filter(Boolean);
  return {
    kind: `${operation.charAt(0)}${operation.slice(1).toLowerCase()}Options`,
    apiVersion: META,
    ...(dryRun.length > 0 && { dryRun }),
    ...Object.fromEntries(texts),
  };
}

/**
 * Returns the draft after mutating admission, whose changes have no owners.
 *
 * @param before the present object, if there is one
 */
export async function admitDraft(
  request: AdmittedRequest,
  draft: ApiObject,
  before?: StoredObject,
): Promise<ApiObject> {
  return withoutDuplicateOwners(request, await mutatedDraft(request, draft, before), 'admitted');
}

async function mutatedDraft(
  request: AdmittedRequest,
  draft: ApiObject,
  before: StoredObject | undefined,
): Promise<ApiObject> {
  const { backend, definition } = request;
  if (!backend.admission.mutates(definition) || request.admitted) return draft;
  if (before) requireCurrent(definition, draft, before);
  const objects = { object: draft, oldObject: before };
  const attributes = attributesOf(request, before ? 'UPDATE' : 'CREATE', objects);
  const object = (await backend.admission.mutate(attributes)) ?? draft;
  if (object === draft) return draft;
  return withDefaults(goObject(shallowCopy(object), definition), definition, 'keepNulls');
}

/** @throws {StatusError} 403 if the user may not create the object, or validating admission rejects the write */
export async function requireAdmitted(
  request: AdmittedRequest,
  operation: 'CREATE' | 'UPDATE',
  object: StoredObject,
  previous: StoredObject | undefined,
): Promise<void> {
  const { backend, definition, info, admitted } = request;
  if (operation === 'CREATE' && info.verb !== 'create') requireMayCreate(request);
  if (!backend.admission.validates(definition) || admitted) return;
  await backend.admission.validate(
    attributesOf(request, operation, {
      object: toRequestedVersion(object, definition),
      oldObject: previous && toRequestedVersion(previous, definition),
    }),
  );
}

/** @throws {StatusError} 403 if an update or a patch would create the object, and the user may not create it */
function requireMayCreate(request: AdmittedRequest): void {
  const { action, allowed, reason } = authorizeCreate(request);
  if (!allowed) throw accessDenied(request.user, action, reason);
}

/** Decides whether the user of a request with another verb may create its object. */
export function authorizeCreate({
  backend,
  request,
  info,
  user,
}: AdmittedRequest): Decision & { readonly action: Action } {
  const action = { ...actionOf(request, info), verb: 'create' };
  return { action, ...backend.access.authorize(user, action) };
}
