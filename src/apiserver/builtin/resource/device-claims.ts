import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, textIn } from '../../../util/json-value.ts';
import { goJson } from '../../../util/go-format.ts';
import { equalJson } from '../../../api/equal.ts';
import type { FieldError } from '../../../api/field-error.ts';
import { fieldError } from '../../../api/field-error.ts';
import type { Action } from '../../../api/policy-rule.ts';
import type { HookContext, StoredObject } from '../../objects/resource-definition.ts';
import { accessDenied } from '../../objects/status-error.ts';

const GROUP = 'resource.k8s.io';
const ADMIN_LABEL = 'resource.kubernetes.io/admin-access';
const NODE_NAME = 'authentication.kubernetes.io/node-name';

type ResourceAction = Extract<Action, { readonly kind: 'resource' }>;

/** Requires that the namespace of a ResourceClaim or a ResourceClaimTemplate permits admin access, if it requests that. */
export function authorizeAdminAccess(
  claim: StoredObject,
  previous: StoredObject | undefined,
  context: HookContext,
): readonly FieldError[] {
  // The spec is immutable.
  if (previous) return [];
  const spec = objectIn(claim, 'spec');
  const devices = objectIn(
    claim.kind === 'ResourceClaim' ? spec : objectIn(spec, 'spec'),
    'devices',
  );
  const requests = objectsIn(devices, 'requests').map((request) => objectIn(request, 'exactly'));
  return requireAdminAccess(requests, 'spec.devices.requests', claim, context);
}

/**
 * Requires the permissions for a change of a ResourceClaim's status: `resourceclaims/binding` for the allocation and
 * the users, `resourceclaims/driver` for the devices of a driver, and admin access in the namespace.
 */
export function authorizeClaimStatus(
  claim: StoredObject,
  previous: StoredObject,
  context: HookContext,
): readonly FieldError[] {
  const status = objectIn(claim, 'status') ?? {};
  const before = objectIn(previous, 'status') ?? {};
  return [
    ...(isAdmin(resultsOf(before))
      ? []
      : requireAdminAccess(resultsOf(status), 'status.allocation.devices.results', claim, context)),
    ...requireBinding(status, before, claim, context),
    ...(objectIn(status, 'allocation') ? requireDrivers(status, before, claim, context) : []),
  ];
}

function resultsOf(status: JsonObject): readonly JsonObject[] {
  return objectsIn(objectIn(objectIn(status, 'allocation'), 'devices'), 'results');
}

function isAdmin(requests: readonly (JsonObject | undefined)[]): boolean {
  return requests.some((request) => request?.['adminAccess'] === true);
}

function requireAdminAccess(
  requests: readonly (JsonObject | undefined)[],
  path: string,
  { metadata }: StoredObject,
  { list }: HookContext,
): readonly FieldError[] {
  const index = requests.findIndex((request) => isAdmin([request]));
  if (index < 0) return [];
  const namespace = list({ group: '', plural: 'namespaces' }).find(
    ({ metadata: { name } }) => name === metadata.namespace,
  );
  if (namespace?.metadata.labels?.[ADMIN_LABEL] === 'true') return [];
  const why = `admin access to devices requires the \`${ADMIN_LABEL}: true\` label on the containing namespace`;
  return [fieldError.forbidden(`${path}[${index}].adminAccess`, why)];
}

function requireBinding(
  status: JsonObject,
  before: JsonObject,
  claim: StoredObject,
  context: HookContext,
): readonly FieldError[] {
  const isSame = (field: string) => equalJson(status[field], before[field]);
  if (isSame('allocation') && isSame('reservedFor')) return [];
  const asked = { ...actionOn(claim, 'binding', context), namespace: '', name: '' };
  const denial = denialOf([asked], context);
  if (denial === undefined) return [];
  const why = `changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="${asked.verb}" permission: ${denial}`;
  return [fieldError.forbidden('status.allocation', why)];
}

function requireDrivers(
  status: JsonObject,
  before: JsonObject,
  claim: StoredObject,
  context: HookContext,
): readonly FieldError[] {
  const { verb, ...asked } = actionOn(claim, 'driver', context);
  const prefixes = isOnNodeOf(status, context)
    ? ['associated-node', 'arbitrary-node']
    : ['arbitrary-node'];
  const verbs = prefixes.map((prefix) => `${prefix}:${verb}`);
  return changedDrivers(status, before).flatMap((name) => {
    const denial = denialOf(
      verbs.map((each) => ({ ...asked, verb: each, name })),
      context,
    );
    if (denial === undefined) return [];
    const why = `changing status.devices requires resource="resourceclaims/driver", verb="[${verbs.join(' ')}]" permission: ${denial}`;
    return [fieldError.forbidden('status.devices', why)];
  });
}

/** Returns the names of the drivers whose devices were added, changed or removed. */
function changedDrivers(status: JsonObject, before: JsonObject): string[] {
  const present = objectsIn(status, 'devices');
  const past = objectsIn(before, 'devices');
  const isOutside = (devices: readonly JsonObject[]) => {
    const known = new Set(devices.map(goJson));
    return (device: JsonObject) => !known.has(goJson(device));
  };
  const changed = [...present.filter(isOutside(past)), ...past.filter(isOutside(present))];
  return [...new Set(changed.map((device) => textIn(device, 'driver')))].sort();
}

/** Whether the user is a service account on the only node of the allocation. */
function isOnNodeOf(status: JsonObject, { user }: HookContext): boolean {
  const [node, ...others] = user.extra?.[NODE_NAME] ?? [];
  if (!user.name.startsWith('system:serviceaccount:') || node === undefined || others.length > 0) {
    return false;
  }
  const selector = objectIn(objectIn(status, 'allocation'), 'nodeSelector');
  const byName = { key: 'metadata.name', operator: 'In', values: [node] };
  return equalJson(selector, { nodeSelectorTerms: [{ matchFields: [byName] }] });
}

function actionOn(
  { metadata }: StoredObject,
  subresource: string,
  { verb }: HookContext,
): ResourceAction {
  const { namespace = '', name } = metadata;
  return {
    kind: 'resource',
    verb,
    group: GROUP,
    resource: 'resourceclaims',
    subresource,
    namespace,
    name,
  };
}

/** Returns why none of the actions is permitted; undefined if one is. */
function denialOf(
  actions: readonly ResourceAction[],
  { access, user }: HookContext,
): string | undefined {
  let denial: string | undefined;
  for (const action of actions) {
    const { allowed, reason } = access.authorize(user, action);
    if (allowed) return undefined;
    denial ??= accessDenied(user, action, reason).message;
  }
  return denial;
}
