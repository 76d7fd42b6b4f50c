import { groupResourceOf } from '../api/resource.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import { isApiError } from '../api/api-error.ts';
import { failureReason, UnreachableError } from '../client/transport/connection-error.ts';
import type { Clock } from '../util/clock.ts';
import { truncate } from '../util/truncate.ts';
import type { Attention, AttentionItem } from './attention.ts';
import type { HealthCheck } from './health-checks.ts';

/** Something that is wrong, or that a reader has to know. */
export interface Problem {
  /** `neutral`: nothing is wrong. */
  readonly tone: 'bad' | 'warning' | 'neutral';
  /** Sentence without its end, before the time: `API server unreachable`. */
  readonly text: string;
  /** Since when, RFC 3339. */
  readonly since?: string | undefined;
  /** Why. */
  readonly detail?: string | undefined;
  /** What to do, as sentences. */
  readonly step?: string | undefined;
  /** Command for the step. */
  readonly command?: string | undefined;
  /** Filters of the keys that it concerns; with `key`, of the only one. */
  readonly keys?: Readonly<Record<string, string>> | undefined;
}

/** What is wrong with a program, the worst first. */
export interface Verdict {
  /** Whether `/readyz` passes. */
  readonly isReady: boolean;
  readonly problems: readonly Problem[];
}

/** Lease as this process last observed it. */
interface HeldLease {
  readonly lease: string;
  /** Empty if the Lease has no holder. */
  readonly holder: string;
  readonly acquireTime: string | undefined;
}

/** The state of which a verdict is made. */
export interface VerdictDeps {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>;
  /** The checks of `/readyz`. */
  readonly readiness: readonly HealthCheck[];
  readonly informers: readonly Pick<InformerView, 'name' | 'resource' | 'hasSynced' | 'progress'>[];
  readonly election?:
    { readonly identity: string; readonly leases: readonly HeldLease[] } | undefined;
  readonly attention: Attention;
  /** Number of hot loops by controller. */
  readonly hotLoops: ReadonlyMap<string, number>;
  /** Command that installs the CustomResourceDefinitions of the program. */
  readonly installCommand: string;
  /**
   * Command that prints the missing permissions of the program.
   * @default none
   */
  readonly checkCommand?: string | undefined;
}

/** Maximum length of the message of a key: what needs attention has all of it. */
const MAX_DETAIL = 200;

/** What to do about each verdict. */
const STEPS = {
  unreachable: 'The caches and the conditions may be old.',
  denied: 'Grant list and watch on these resources to the user of this program.',
  unauthorized: 'Replace the credentials of this program: the API server does not accept them.',
  refused: 'See the log of this program for the error, and the log of the API server.',
  stalled:
    'Wait: the watches are established again. If they stall again, check the load balancers and proxies before the API server.',
  missing: 'Run this command to install:',
  syncing: 'Wait: the controllers start when the caches have synced.',
  free: 'Wait: a replica acquires it. If none does, see the logs of the replicas.',
  standby: 'Nothing to do: this replica syncs keys when it acquires the Lease.',
  unread:
    'Wait. If this remains, see the log of this program: it may have no permission for Leases.',
  check: 'Remove the reason: for example, a webhook has no certificate, or the process stops.',
  failing: 'Open the oldest key: its last syncs show the error and the failed API calls.',
  object: 'Open the oldest key: it shows the conditions, owned objects and events of the object.',
  hotLoop: 'Open the key: the causes of its syncs show which fields change each time.',
} as const;

/** Returns what is wrong with a program. */
export function verdictOf(deps: VerdictDeps): Verdict {
  const failed = deps.readiness.flatMap(({ name, check }) => {
    const reason = check();
    return reason === undefined ? [] : [{ name, reason }];
  });
  const server = serverProblems(deps);
  const known = [...server, ...electionProblems(deps), ...keyProblems(deps)];
  // The problems of informers say why their checks fail.
  const others = failed.filter(({ name }) => server.length === 0 || !name.startsWith('informer-'));
  const unknown = others.map(({ name, reason }): Problem => ({
    tone: 'bad',
    text: `Check ${name} fails`,
    detail: reason,
    step: STEPS.check,
  }));
  const order: readonly Problem['tone'][] = ['bad', 'warning', 'neutral'];
  return {
    isReady: failed.length === 0,
    problems: [...unknown, ...known].toSorted(
      (a, b) => order.indexOf(a.tone) - order.indexOf(b.tone),
    ),
  };
}

type ShownInformer = VerdictDeps['informers'][number];

/** Problems of lists and watches, grouped by their cause. */
function serverProblems({
  informers,
  clock,
  installCommand,
  checkCommand,
}: VerdictDeps): Problem[] {
  const agoMs = (startMs: number) =>
    new Date(clock.now() - (clock.monotonic() - startMs)).toISOString();
  const sinceOf = (group: readonly ShownInformer[]) =>
    agoMs(
      Math.min(
        ...group.map(
          ({ progress }) => progress.failingSinceMs ?? clock.monotonic() - progress.inactiveMs,
        ),
      ),
    );
  const namesOf = (group: readonly ShownInformer[]) =>
    [...new Set(group.map(({ name }) => name))].join(', ');
  const missing = informers.filter(({ progress }) => progress.missing);
  const failing = informers.filter(
    ({ progress }) => !progress.missing && progress.failingSinceMs !== undefined,
  );
  const isUnreachable = ({ progress }: ShownInformer) =>
    isApiError(progress.lastError, 'unreachable');
  const unreachable = failing.filter(isUnreachable);
  const stalled = informers.filter(
    ({ progress }) =>
      !progress.missing && progress.failingSinceMs === undefined && progress.isStale,
  );
  const refused = Map.groupBy(
    failing.filter((informer) => !isUnreachable(informer)),
    ({ progress }) => failureReason(progress.lastError),
  );
  const syncing = informers.filter(
    ({ hasSynced, progress }) =>
      !hasSynced && !progress.missing && progress.failingSinceMs === undefined,
  );
  const problems: Problem[] = [];
  const [first] = unreachable;
  if (first) {
    const errors = unreachable.flatMap(({ progress: { lastError } }) =>
      lastError instanceof UnreachableError ? [lastError] : [],
    );
    const reason = failureReason(errors[0] ?? first.progress.lastError);
    const servers = new Set(errors.map(({ server }) => server));
    problems.push({
      tone: 'bad',
      text:
        unreachable.length === informers.length
          ? 'API server unreachable'
          : `API server unreachable for ${namesOf(unreachable)}`,
      since: sinceOf(unreachable),
      detail: servers.size > 0 ? `${reason} (${[...servers].join(', ')})` : reason,
      step: `${errors[0]?.nextStep ?? ''} ${STEPS.unreachable}`.trim(),
    });
  }
  for (const [reason, group] of refused) {
    const isDenied = /^(?:forbidden|unauthorized)$/i.test(reason);
    problems.push({
      tone: 'bad',
      text: isDenied
        ? `No permission to list and watch ${namesOf(group)}`
        : `Cannot list and watch ${namesOf(group)}`,
      since: sinceOf(group),
      detail: reason,
      step: reason === 'forbidden' ? STEPS.denied : isDenied ? STEPS.unauthorized : STEPS.refused,
      command: isDenied ? checkCommand : undefined,
    });
  }
  if (stalled.length > 0) {
    problems.push({
      tone: 'bad',
      text: `Watches stalled: ${namesOf(stalled)}`,
      since: sinceOf(stalled),
      detail: 'no activity from the API server; the caches may be out of date',
      step: STEPS.stalled,
    });
  }
  if (missing.length > 0) {
    const names = [...new Set(missing.map(({ resource }) => groupResourceOf(resource)))];
    problems.push({
      tone: 'bad',
      text: `CustomResourceDefinition${names.length === 1 ? '' : 's'} not installed: ${names.join(', ')}`,
      since: sinceOf(missing),
      detail: 'the API server does not serve them, so their objects are not synced',
      step: STEPS.missing,
      command: installCommand,
    });
  }
  if (problems.length === 0 && syncing.length > 0) {
    problems.push({
      tone: 'warning',
      text: `Waiting for caches to sync: ${namesOf(syncing)}`,
      step: STEPS.syncing,
    });
  }
  return problems;
}

function electionProblems({ election }: VerdictDeps): Problem[] {
  if (!election) return [];
  const { identity, leases } = election;
  const free = leases.filter(({ holder }) => holder === '').map(({ lease }) => lease);
  const text = `No replica holds the Lease ${free.join(', ')}`;
  const problems: Problem[] = free.length > 0 ? [{ tone: 'warning', text, step: STEPS.free }] : [];
  if (leases.some(({ holder }) => holder === identity)) return problems;
  const [first, ...others] = leases;
  const detail =
    first && first.holder !== '' && others.length === 0
      ? `${first.holder} syncs the keys`
      : 'other replicas sync the keys';
  const standby = { text: 'Standing by', since: first?.acquireTime };
  return first
    ? [...problems, { ...standby, tone: 'neutral', detail, step: STEPS.standby }]
    : [{ ...standby, tone: 'warning', detail: 'no Lease was read yet', step: STEPS.unread }];
}

/** One problem for each controller and kind of problem, with the oldest key. */
function keyProblems({ attention, hotLoops }: VerdictDeps): Problem[] {
  const groups = Map.groupBy(
    attention.items.filter(({ problem }) => problem !== 'recovered'),
    ({ controller, problem }) => `${problem} ${controller}`,
  );
  const problems = Array.from(groups.values(), (group): Problem[] => {
    const [oldest] = group;
    return oldest ? [keyProblem(oldest, group.length)] : [];
  });
  return [
    ...problems.flat(),
    ...Array.from(hotLoops, ([controller, count]): Problem[] =>
      count > 0
        ? [
            {
              tone: 'warning',
              text: `${controller}: ${count} in a hot loop`,
              step: STEPS.hotLoop,
              keys: { controller },
            },
          ]
        : [],
    ).flat(),
  ];
}

function keyProblem(
  { controller, key, problem, since, message }: AttentionItem,
  count: number,
): Problem {
  const what = {
    failing: count === 1 ? 'fails' : 'fail',
    stalled: count === 1 ? 'is stalled' : 'are stalled',
    notReady: count === 1 ? 'is not ready' : 'are not ready',
    recovered: 'recovered',
  }[problem];
  const noun = problem === 'failing' ? 'keys' : 'objects';
  return {
    tone: problem === 'notReady' ? 'warning' : 'bad',
    text:
      count === 1 ? `${controller} ${key} ${what}` : `${count} ${noun} of ${controller} ${what}`,
    since,
    detail: truncate(count === 1 ? message : `${key}: ${message}`, MAX_DETAIL),
    step: problem === 'failing' ? STEPS.failing : STEPS.object,
    keys: {
      controller,
      ...(count === 1 && { key }),
      ...(problem === 'failing' ? { result: 'failed' } : { condition: problem }),
    },
  };
}
