import { isApiError } from '../../api/api-error.ts';
import { NEWEST_MINOR, OLDEST_MINOR, skewOf } from '../../api/supported-versions.ts';
import type { Client } from '../../client/client.ts';
import { serverVersion } from '../../client/discovery.ts';
import { isRecord } from '../../util/values.ts';
import type { Clock } from '../../util/clock.ts';
import { errorText } from '../error-text.ts';
import { failed, ok, warning } from './row.ts';
import type { Row } from './row.ts';

const REACH = 'API server';

/** Whether the server answers, as whom it knows us, and which version it is. */
export interface ServerFindings {
  readonly rows: readonly Row[];
  /** Nothing else can be found out. */
  readonly isOutOfReach: boolean;
  /** Absent: the server does not say. */
  readonly user?: string;
}

export async function checkServer(
  client: Client,
  server: string,
  clock: Pick<Clock, 'monotonic'>,
  signal: AbortSignal,
): Promise<ServerFindings> {
  const startMs = clock.monotonic();
  try {
    const version = await serverVersion(client, signal);
    const took = `${Math.round(clock.monotonic() - startMs)}ms`;
    const user = await whoAmI(client, signal);
    const as = user === undefined ? '' : `; user ${JSON.stringify(user)}`;
    return {
      rows: [ok(REACH, `${server} responded in ${took}${as}`), versionRow(version)],
      isOutOfReach: false,
      ...(user !== undefined && { user }),
    };
  } catch (error) {
    signal.throwIfAborted();
    return { rows: [failed(REACH, errorText(error), ...nextOf(error))], isOutOfReach: true };
  }
}

function versionRow(version: Awaited<ReturnType<typeof serverVersion>>): Row {
  const check = 'version';
  const supported = `1.${OLDEST_MINOR} to 1.${NEWEST_MINOR}`;
  const { gitVersion } = version;
  switch (skewOf(version)) {
    case 'supported':
      return ok(check, `${gitVersion}; tested with ${supported}`);
    case 'older':
      return failed(
        check,
        `${gitVersion} is older than the versions that this release is tested with: ${supported}`,
        'Upgrade the cluster, or install an older release of crd-controller',
      );
    case 'newer':
      return warning(
        check,
        `${gitVersion} is newer than the versions that this release is tested with: ${supported}`,
        'Install a newer release of crd-controller, if there is one',
      );
    case 'unknown':
      return warning(
        check,
        `${gitVersion} is not a known Kubernetes version; tested with ${supported}`,
      );
  }
}

/** Undefined if the server does not tell: it is older than the question, or does not let us ask. */
async function whoAmI(client: Client, signal: AbortSignal): Promise<string | undefined> {
  try {
    const answer = await client.raw({
      method: 'POST',
      path: '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' },
      signal,
    });
    const status = isRecord(answer) ? answer['status'] : undefined;
    const user = isRecord(status) ? status['userInfo'] : undefined;
    const name = isRecord(user) ? user['username'] : undefined;
    return typeof name === 'string' ? name : undefined;
  } catch (error) {
    if (isApiError(error, 'notFound', 'forbidden', 'methodNotAllowed')) return undefined;
    throw error;
  }
}

function nextOf(error: unknown): string[] {
  if (!isApiError(error, 'unauthorized')) return [];
  return ['Renew the token or client certificate in the kubeconfig. Verify: kubectl auth whoami'];
}
