import { isApiError } from '../../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/builtin.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { isRecord } from '../../util/values.ts';
import { errorText } from '../error-text.ts';
import { failed, ok } from './check-result.ts';
import type { CheckResult } from './check-result.ts';

/** Command that installs the CRDs of this version. */
const INSTALL =
  'crd-controller manifests --only=crds | kubectl apply --server-side --force-conflicts -f -';

/**
 * Checks that the CRD of `resource` exists, is Established and serves the required version. A user who
 * cannot read CRDs, such as the daemon's own ServiceAccount, learns only whether the version is served.
 */
export async function checkDefinition(
  client: Client,
  resource: Resource,
  signal: AbortSignal,
): Promise<CheckResult> {
  const name = groupResourceOf(resource);
  const check = `CRD ${name}`;
  try {
    const crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, { signal });
    return crdResult(check, crd, resource.version);
  } catch (error) {
    signal.throwIfAborted();
    if (isApiError(error, 'notFound')) return failed(check, 'not installed', ...installSteps());
    if (!isApiError(error, 'forbidden')) return failed(check, errorText(error));
    return checkServed(client, resource, check, signal);
  }
}

function crdResult(check: string, crd: CustomResourceDefinition, version: string): CheckResult {
  const { conditions = [] } = crd.status ?? {};
  const refusal = conditions.find(
    ({ type, status }) => (type === 'Established' || type === 'NamesAccepted') && status !== 'True',
  );
  if (refusal) {
    return failed(
      check,
      `not served: condition ${refusal.type} is ${refusal.status}, ${refusal.reason ?? ''}: ${refusal.message ?? ''}`,
      'Another CRD may use the same names. List them: kubectl get crds',
    );
  }
  if (!conditions.some(({ type }) => type === 'Established')) {
    return failed(check, 'not Established yet', 'Wait a few seconds and run the check again');
  }
  if (crd.metadata.deletionTimestamp !== undefined) {
    return failed(
      check,
      'being deleted: waits until its objects are deleted',
      'Wait until it is deleted, then install it again',
    );
  }
  const served = crd.spec.versions.filter((each) => each.served).map((each) => each.name);
  if (served.includes(version)) return ok(check, `Established, serves ${version}`);
  return failed(
    check,
    `serves ${served.join(', ') || 'no version'}, but this release requires ${version}`,
    ...installSteps(),
  );
}

async function checkServed(
  client: Client,
  { group, version, plural }: Resource,
  check: string,
  signal: AbortSignal,
): Promise<CheckResult> {
  try {
    const answer = await client.raw({ path: `/apis/${group}/${version}`, signal });
    const resources = isRecord(answer) ? answer['resources'] : undefined;
    const isServed =
      Array.isArray(resources) &&
      resources.some((each: unknown) => isRecord(each) && each['name'] === plural);
    if (isServed) return ok(check, `serves ${version}`);
  } catch (error) {
    signal.throwIfAborted();
    if (!isApiError(error, 'notFound')) return failed(check, errorText(error));
  }
  return failed(
    check,
    `${version} is not served; no permission to read the CRD`,
    ...installSteps(),
  );
}

function installSteps(): string[] {
  return [`Install it: ${INSTALL}`];
}
