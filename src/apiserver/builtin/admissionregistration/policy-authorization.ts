import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import { equalJson } from '../../../api/equal.ts';
import type { FieldError } from '../../../api/field-error.ts';
import { fieldError } from '../../../api/field-error.ts';
import type { User } from '../../../api/user.ts';
import { MASTERS } from '../../../api/user.ts';
import type { HookContext, StoredObject } from '../../objects/resource-definition.ts';

const GROUP = 'admissionregistration.k8s.io';

/** The resource of a policy's parameters. `*` stands for all if it is unknown. */
interface ParamResource {
  readonly group: string;
  readonly resource: string;
  /** Why the resource is unknown. */
  readonly problem?: string;
}

/** Requires that the user who gives a policy its `paramKind` may read all objects of that kind. */
export function authorizeParamKind(
  policy: StoredObject,
  previous: StoredObject | undefined,
  context: HookContext,
): readonly FieldError[] {
  const paramKind = paramKindOf(policy);
  if (!paramKind || context.user.groups.includes(MASTERS)) return [];
  if (previous && equalJson(paramKind, paramKindOf(previous))) return [];
  const { group, resource } = resourceOf(paramKind, context);
  const asked = { verb: 'get', group, resource, namespace: '*', name: '*' };
  if (isAllowed(context, asked)) return [];
  const kind = `kind=${textIn(paramKind, 'kind')}, apiVersion=${textIn(paramKind, 'apiVersion')}`;
  const why = `user ${inGo(context.user)} must have "get" permission on all objects of the referenced paramKind (${kind})`;
  return [fieldError.forbidden('spec.paramKind', why)];
}

/** Requires that the user who gives a binding its `paramRef` may read the referenced objects. */
export function authorizeParamRef(
  binding: StoredObject,
  previous: StoredObject | undefined,
  context: HookContext,
): readonly FieldError[] {
  const spec = objectIn(binding, 'spec') ?? {};
  const paramRef = objectIn(spec, 'paramRef');
  if (!paramRef || context.user.groups.includes(MASTERS)) return [];
  const before = previous && objectIn(previous, 'spec');
  const isSame = (field: string) => equalJson(spec[field], before?.[field]);
  if (before && isSame('paramRef') && isSame('policyName')) return [];

  const { group, resource, problem } = paramResourceOf(
    binding,
    textIn(spec, 'policyName'),
    context,
  );
  const name = textIn(paramRef, 'name');
  const verb = name === '' ? 'list' : 'get';
  const asked = { verb, group, resource, namespace: textIn(paramRef, 'namespace'), name };
  if (isAllowed(context, asked)) return [];
  const user = inGo(context.user);
  // Upstream exchanges the user and the verb in the message for a MutatingAdmissionPolicyBinding.
  const [who, what] = binding.kind.startsWith('Mutating') ? [verb, user] : [user, verb];
  const why =
    problem === undefined
      ? `user ${who} does not have "${what}" permission on the object referenced by paramRef`
      : `${problem} to determine minimum required permissions and user ${user} does not have "${verb}" permission for all groups, versions and resources`;
  return [fieldError.forbidden('spec.paramRef', why)];
}

function paramKindOf(policy: StoredObject): JsonObject | undefined {
  return objectIn(objectIn(policy, 'spec'), 'paramKind');
}

/** Returns the resource of the parameters of a binding's policy. */
function paramResourceOf(
  { kind }: StoredObject,
  policyName: string,
  context: HookContext,
): ParamResource {
  const plural = kind.startsWith('Mutating')
    ? 'mutatingadmissionpolicies'
    : 'validatingadmissionpolicies';
  const policies = context.list({ group: GROUP, plural });
  const policy = policies.find(({ metadata }) => metadata.name === policyName);
  if (!policy) return { group: '*', resource: '*', problem: `unable to get policy ${policyName}` };
  const paramKind = paramKindOf(policy);
  return paramKind ? resourceOf(paramKind, context) : { group: '*', resource: '*' };
}

function resourceOf(paramKind: JsonObject, { pluralOf }: HookContext): ParamResource {
  const apiVersion = textIn(paramKind, 'apiVersion');
  const kind = textIn(paramKind, 'kind');
  const group = apiVersion.includes('/') ? (apiVersion.split('/', 1)[0] ?? '') : '';
  const resource = pluralOf(apiVersion, kind);
  if (resource !== undefined) return { group, resource };
  return { group, resource: '*', problem: `unable to resolve paramKind &{${apiVersion} ${kind}}` };
}

function isAllowed(
  { access, user }: HookContext,
  asked: {
    readonly verb: string;
    readonly group: string;
    readonly resource: string;
    readonly namespace: string;
    readonly name: string;
  },
): boolean {
  return access.authorize(user, { kind: 'resource', subresource: '', ...asked }).allowed;
}

/** Formats a user as Go's `%v`, as in messages of kube-apiserver. */
function inGo({ name, uid = '', groups, extra = {} }: User): string {
  const fields = Object.entries(extra).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const shown = fields.map(([key, values]) => `${key}:[${values.join(' ')}]`);
  return `&{${name} ${uid} [${groups.join(' ')}] map[${shown.join(' ')}]}`;
}
