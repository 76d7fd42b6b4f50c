import { groupResourceOf } from '../api/resource.ts';
import type { InformerView } from '../cache/shared-informer.ts';
import { isApiError } from '../api/api-error.ts';
import { failureReason } from '../client/transport/connection-error.ts';
import type { Clock } from '../util/clock.ts';
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
  /** Command that fixes it. */
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
}

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
function serverProblems({ informers, clock, installCommand }: VerdictDeps): Problem[] {
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
    problems.push({
      tone: 'bad',
      text:
        unreachable.length === informers.length
          ? 'API server unreachable'
          : `API server unreachable for ${namesOf(unreachable)}`,
      since: sinceOf(unreachable),
      detail: failureReason(first.progress.lastError),
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
    });
  }
  if (stalled.length > 0) {
    problems.push({
      tone: 'bad',
      text: `Watches stalled: ${namesOf(stalled)}`,
      since: sinceOf(stalled),
      detail: 'no activity from the API server; the caches may be out of date',
    });
  }
  if (missing.length > 0) {
    const names = [...new Set(missing.map(({ resource }) => groupResourceOf(resource)))];
    problems.push({
      tone: 'bad',
      text: `CustomResourceDefinition not installed: ${names.join(', ')}`,
      since: sinceOf(missing),
      detail: 'the API server does not serve the resource, and its objects are not synced',
      command: installCommand,
    });
  }
  if (problems.length === 0 && syncing.length > 0) {
    problems.push({ tone: 'warning', text: `Waiting for caches to sync: ${namesOf(syncing)}` });
  }
  return problems;
}

function electionProblems({ election }: VerdictDeps): Problem[] {
  if (!election) return [];
  const { identity, leases } = election;
  const free = leases.filter(({ holder }) => holder === '').map(({ lease }) => lease);
  const problems: Problem[] =
    free.length > 0
      ? [{ tone: 'warning', text: `No replica holds the Lease ${free.join(', ')}` }]
      : [];
  if (leases.some(({ holder }) => holder === identity)) return problems;
  const [first, ...others] = leases;
  const detail =
    first && first.holder !== '' && others.length === 0
      ? `${first.holder} syncs the keys`
      : 'other replicas sync the keys';
  return first
    ? [...problems, { tone: 'neutral', text: 'Standing by', since: first.acquireTime, detail }]
    : [{ tone: 'warning', text: 'Standing by', detail: 'no Lease was read yet' }];
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
        ? [{ tone: 'warning', text: `${controller}: ${count} in a hot loop`, keys: { controller } }]
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
    detail: count === 1 ? message : `${key}: ${message}`,
    keys: {
      controller,
      ...(count === 1 && { key }),
      ...(problem === 'failing' ? { result: 'failed' } : { condition: problem }),
    },
  };
}
