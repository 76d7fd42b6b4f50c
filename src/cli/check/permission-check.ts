import { isApiError } from '../../api/api-error.ts';
import { canICommand, missingRule } from '../../api/permission.ts';
import type { Permission } from '../../api/permission.ts';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../util/values.ts';
import { errorText } from '../error-text.ts';
import type { Claim } from './rights.ts';
import { failed, ok, skipped, warning } from './row.ts';
import type { Row } from './row.ts';

/**
 * Nobody sends a request for finalizers: a plugin of admission looks whether who creates a child that
 * blocks the deletion of its owner has the right to it. Whether the plugin is on, no server tells.
 */
const ASKED_BY_ADMISSION =
  'no owned object can be created if the admission plugin OwnerReferencesPermissionEnforcement is enabled, as in OpenShift';

/** So many questions are asked at once. */
const AT_ONCE = 10;

/**
 * Whether the server allows all that `claim` needs, by asking it about each right. Nothing is tried
 * out.
 *
 * @param user who we are to the server, if it tells
 */
export async function checkPermissions(
  client: Client,
  { part, rights }: Claim,
  user: string | undefined,
  signal: AbortSignal,
): Promise<Row[]> {
  const check = `permissions of ${part}`;
  const missing: Permission[] = [];
  try {
    for (let at = 0; at < rights.length; at += AT_ONCE) {
      const some = rights.slice(at, at + AT_ONCE);
      const allowed = await Promise.all(some.map((right) => isAllowed(client, right, signal)));
      missing.push(...some.filter((_, index) => !allowed[index]));
    }
  } catch (error) {
    signal.throwIfAborted();
    return [notAnswered(check, error)];
  }
  if (missing.length === 0) return [ok(check, `${rights.length} of ${rights.length} granted`)];
  return groupsOf(missing).map((group) => missingRow(check, group, user));
}

async function isAllowed(client: Client, right: Permission, signal: AbortSignal): Promise<boolean> {
  const answer = await client.raw({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: right },
    },
    signal,
  });
  const status = isRecord(answer) ? answer['status'] : undefined;
  return isRecord(status) && status['allowed'] === true;
}

function notAnswered(check: string, error: unknown): Row {
  if (isApiError(error, 'forbidden')) {
    return failed(
      check,
      'no permission to create SelfSubjectAccessReviews',
      'Set credentials in the kubeconfig. Verify: kubectl auth whoami',
    );
  }
  if (isApiError(error, 'notFound'))
    return skipped(check, 'the server does not serve SelfSubjectAccessReviews');
  return failed(check, errorText(error));
}

/** Rights about the same, apart from their verbs. */
function groupsOf(rights: readonly Permission[]): (readonly [Permission, ...Permission[]])[] {
  const groups = new Map<string, [Permission, ...Permission[]]>();
  for (const right of rights) {
    const { verb: _, ...rest } = right;
    const id = JSON.stringify(rest);
    const group = groups.get(id);
    if (group) group.push(right);
    else groups.set(id, [right]);
  }
  return [...groups.values()];
}

function missingRow(
  check: string,
  group: readonly [Permission, ...Permission[]],
  user: string | undefined,
): Row {
  const [first] = group;
  const { group: apiGroup, resource, subresource, namespace, name } = first;
  const verbs = group.map(({ verb }) => verb);
  const plural = subresource === undefined ? resource : `${resource}/${subresource}`;
  const what = apiGroup ? `${plural} of ${apiGroup}` : plural;
  const which = name === undefined ? what : `${what} named ${name}`;
  const where = namespace === undefined ? 'in all namespaces' : `in namespace ${namespace}`;
  const role = namespace === undefined ? 'ClusterRole' : 'Role or ClusterRole';
  const detail = `cannot ${verbs.join(', ')} ${which} ${where}`;
  const next = [
    `Add this rule to a ${role} of the user: ${missingRule(first, verbs)}`,
    `Verify: ${canICommand({ ...first, user })}`,
  ];
  return subresource === 'finalizers'
    ? warning(check, `${detail}: ${ASKED_BY_ADMISSION}`, ...next)
    : failed(check, detail, ...next);
}
