import { isApiError } from '../../api/api-error.ts';
import { NEWEST_MINOR, OLDEST_MINOR, skewOf } from '../../api/supported-versions.ts';
import type { Client } from '../../client/client.ts';
import { serverVersion } from '../../client/discovery.ts';
import { isRecord } from '../../util/values.ts';
import type { Clock } from '../../util/clock.ts';
import { errorText } from '../common/errors.ts';
import { failed, ok, skipped, warning } from './check-result.ts';
import type { CheckResult } from './check-result.ts';
import type { HttpHandler } from '../../util/http.ts';
import { formatDuration } from '../../util/duration.ts';

const REACH = 'API server';

/** Results of the checks of the API server: availability, user, version. */
export interface ServerCheck {
  readonly results: readonly CheckResult[];
  /** Whether no further check is possible. */
  readonly isUnreachable: boolean;
  /** Absent: the server does not return it. */
  readonly user?: string;
}

export async function checkServer(
  client: Client,
  server: string,
  clock: Pick<Clock, 'monotonic'>,
  signal: AbortSignal,
): Promise<ServerCheck> {
  const startMs = clock.monotonic();
  try {
    const version = await serverVersion(client, signal);
    const took = `${Math.round(clock.monotonic() - startMs)}ms`;
    const user = await whoAmI(client, signal);
    const as = user === undefined ? '' : `; user ${JSON.stringify(user)}`;
    return {
      results: [ok(REACH, `${server} responded in ${took}${as}`), checkVersion(version)],
      isUnreachable: false,
      ...(user !== undefined && { user }),
    };
  } catch (error) {
    signal.throwIfAborted();
    return { results: [failed(REACH, errorText(error), ...nextSteps(error))], isUnreachable: true };
  }
}

function checkVersion(version: Awaited<ReturnType<typeof serverVersion>>): CheckResult {
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

/**
 * Returns the user name as the server knows it. Undefined if the server does not serve SelfSubjectReviews or
 * does not permit them.
 */
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

function nextSteps(error: unknown): string[] {
  if (!isApiError(error, 'unauthorized')) return [];
  return ['Renew the token or client certificate in the kubeconfig. Verify: kubectl auth whoami'];
}

/** Maximum clock skew in milliseconds before the check fails. */
const MOST_SKEW_MS = 5000;

const CHECK = 'clock';

/**
 * Estimates the clock of the API server from the `Date` headers of its responses. A date has whole seconds
 * and was written between request and response. Each response bounds the difference, and several responses
 * bound it closely.
 */
export class ServerClock {
  readonly #clock: Pick<Clock, 'now'>;
  /** Bounds of the difference between the server's clock and the local clock, in milliseconds. */
  #leastMs = -Infinity;
  #mostMs = Infinity;

  constructor(clock: Pick<Clock, 'now'>) {
    this.#clock = clock;
  }

  /** Wraps a transport and reads the date of every response. */
  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      const sentMs = this.#clock.now();
      const response = await handler(request);
      this.#saw(response.headers['date'], sentMs, this.#clock.now());
      return response;
    };

  #saw(date: string | undefined, sentMs: number, answeredMs: number): void {
    const serverMs = Date.parse(date ?? '');
    if (Number.isNaN(serverMs)) return;
    const least = serverMs - answeredMs;
    const most = serverMs + 1000 - sentMs;
    const isNews = least > this.#mostMs || most < this.#leastMs;
    // A clock was set, or another server responded: the latest response decides.
    this.#leastMs = isNews ? least : Math.max(least, this.#leastMs);
    this.#mostMs = isNews ? most : Math.min(most, this.#mostMs);
  }

  /** Returns the estimated time of the server's clock, in milliseconds since the Unix epoch. */
  now(): number {
    return this.#clock.now() + (this.#differenceMs ?? 0);
  }

  /** Least difference that the responses prove, in milliseconds; undefined if unknown. */
  get #differenceMs(): number | undefined {
    if (this.#mostMs === Infinity) return undefined;
    if (this.#leastMs > 0) return this.#leastMs;
    return Math.min(0, this.#mostMs);
  }

  result(): CheckResult {
    const differenceMs = this.#differenceMs;
    if (differenceMs === undefined) return skipped(CHECK, 'the server sends no Date header');
    const seconds = Math.floor(Math.abs(differenceMs) / 1000);
    if (seconds === 0) return ok(CHECK, "within 1s of the server's clock");
    const text = `${formatDuration(1000 * seconds)} ${differenceMs < 0 ? 'ahead of' : 'behind'} the server's clock`;
    if (Math.abs(differenceMs) <= MOST_SKEW_MS) return ok(CHECK, text);
    return failed(
      CHECK,
      `${text}: Ats start at the wrong time, and credentials can be rejected as expired or not yet valid`,
      'Synchronise the clocks of this machine and of the control plane with NTP. Verify: timedatectl',
    );
  }
}
