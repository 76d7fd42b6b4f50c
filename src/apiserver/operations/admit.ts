import { isDryRun } from '../request/request-info.ts';
import { actionOf } from '../auth/access.ts';
import type { AdmittedOperation, Attributes } from '../admission/attributes.ts';
import type { Call } from './call.ts';
import { toRequestedVersion } from '../request/negotiation.ts';
import type { Action, Decision } from '../../api/policy-rule.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { accessDenied } from '../objects/status-error.ts';

export interface AdmittedObjects {
  readonly object?: StoredObject | undefined;
  readonly oldObject?: StoredObject | undefined;
  /** Kind of the objects, if it is not the kind of the resource. */
  readonly kind?: Attributes['kind'];
  /** @default the options in the query */
  readonly options?: object;
}

export function attributesOf(
  call: Call,
  operation: AdmittedOperation,
  { object, oldObject, kind = call.definition, options }: AdmittedObjects,
): Attributes {
  const { definition, info, user, warnings, annotations, request } = call;
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
    dryRun: isDryRun(call),
    options: options ?? optionsOf(call, operation),
    signal: request.signal,
    warnings,
    annotations,
  };
}

const META = 'meta.k8s.io/v1';

/** Returns the options in the query of a write, as an object of `meta.k8s.io`. A patch creates or updates. */
function optionsOf({ info }: Call, operation: AdmittedOperation): object {
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

/** @throws {StatusError} 403 if the user may not create the object, or validating admission rejects the write */
export async function requireAdmitted(
  call: Call,
  operation: 'CREATE' | 'UPDATE',
  object: StoredObject,
  previous: StoredObject | undefined,
): Promise<void> {
  const { backend, definition, info, admitted } = call;
  if (operation === 'CREATE' && info.verb !== 'create') requireMayCreate(call);
  if (!backend.admission.validates || admitted) return;
  await backend.admission.validate(
    attributesOf(call, operation, {
      object: toRequestedVersion(object, definition),
      oldObject: previous && toRequestedVersion(previous, definition),
    }),
  );
}

/** @throws {StatusError} 403 if an update or a patch would create the object, and the user may not create it */
function requireMayCreate(call: Call): void {
  const { action, allowed, reason } = authorizeCreate(call);
  if (!allowed) throw accessDenied(call.user, action, reason);
}

/** Decides whether the user of a request with another verb may create its object. */
export function authorizeCreate({
  backend,
  request,
  info,
  user,
}: Call): Decision & { readonly action: Action } {
  const action = { ...actionOf(request, info), verb: 'create' };
  return { action, ...backend.access.authorize(user, action) };
}
