import type { InformerSet } from '../cache/informer-set.ts';
import { metricsOf } from '../metrics/metrics.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { createRegistry, expose } from '../metrics/registry.ts';
import type { MetricsText } from '../metrics/registry.ts';
import type { RecordedEvent } from '../record/recorded-event.ts';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import type { Runnable } from '../util/runnable.ts';
import type { Controller } from './controller.ts';
import type { Coordination } from './coordination.ts';
import type { ObjectKey } from '../api/object-key.ts';
import { cachePage, statusPage } from '../serving/debug-pages.ts';
import type { DebugLease } from '../serving/debug-pages.ts';
import { SyncHistory } from './sync-history.ts';
import { attentionOf } from '../serving/attention.ts';
import { informerHealthChecks } from '../serving/health-checks.ts';
import type { HealthCheck } from '../serving/health-checks.ts';
import { StatusHistory } from '../serving/status-history.ts';
import { verdictOf } from '../serving/verdict.ts';
import { isLoopback } from '../serving/bind-address.ts';
import { debugPage } from '../serving/page/debug-page.ts';
import { objectPage } from '../serving/object-page.ts';
import { queuePages } from '../serving/queue-pages.ts';
import type { KeyOwner } from '../serving/controller-view.ts';
import { Shards } from '../sharding/shards.ts';
import { HttpServer } from '../serving/http-server.ts';
import type { Pages } from '../serving/routes.ts';
import type { WebhookServing } from './webhook-serving.ts';
import { checkOptions } from '../util/check-options.ts';
import type { OptionNames } from '../util/check-options.ts';

const DEBUG_OPTIONS: OptionNames<DebugOptions> = {
  bindAddress: true,
  version: true,
  expose: true,
  redact: true,
};

/** Debug pages on a loopback address: the pages that `crd-controller top` reads. */
export interface DebugOptions {
  /** `127.0.0.1:6060`. Only loopback addresses, because the pages show object names and error messages. */
  readonly bindAddress: string;
  /**
   * The program's version.
   * @default 'unknown'
   */
  readonly version?: string | undefined;
  /**
   * Returns the series of `metrics`: `() => expose(registry)`.
   * @default the series of a separate registry if `metrics` is not given; otherwise none
   */
  readonly expose?: (() => Promise<MetricsText>) | undefined;
  /**
   * Masks credentials in texts.
   * @default no masking
   */
  readonly redact?: ((text: string) => string) | undefined;
}

/** The parts of a program that its servers report on. */
export interface ControllerProgram {
  readonly controllers: readonly Controller[];
  readonly informers: InformerSet;
  /** The informers of the clusters of `kit.forCluster`. */
  readonly remoteInformers: readonly InformerSet[];
  /** The last events that the controllers recorded; empty without a history. */
  readonly recentEvents: readonly RecordedEvent[];
  /** The leader elector or the shards; undefined without leader election. */
  readonly leadership: Coordination['leadership'] | undefined;
  /** Identity in the leader election; undefined without one. */
  readonly identity: string | undefined;
  /** The last observed state of each Lease; empty without leader election. */
  readonly leases: readonly DebugLease[];
  /** Aborts when the program starts to stop. */
  readonly stopping: AbortSignal;
  /** The server of webhooks; undefined if there is none. Add its `readiness` to the checks of `/readyz`. */
  readonly webhooks: Pick<WebhookServing, 'server' | 'readiness'> | undefined;
}

/** Returns the checks of `/readyz`. */
export function readinessChecks(program: ControllerProgram, clock: Clock): HealthCheck[] {
  return [
    ...informerHealthChecks(() => program.informers.informers, clock),
    ...(program.webhooks?.readiness ?? []),
    { name: 'shutdown', check: () => (program.stopping.aborted ? 'shutting down' : undefined) },
  ];
}

/** Returns the debug pages about a program, and what collects their data while the program runs. */
export function programPages(
  program: ControllerProgram,
  { clock, history, name, version, installCommand, checkCommand, redact }: ProgramPagesOptions,
): { readonly pages: Pages; readonly recorder: Runnable } {
  const { identity } = program;
  const readiness = readinessChecks(program, clock);
  const informers = () =>
    [program.informers, ...program.remoteInformers].flatMap((set) => set.informers);
  const controllers = () => program.controllers;
  const attention = () => attentionOf(program.controllers, history.all());
  const verdict = () =>
    verdictOf({
      clock,
      readiness,
      informers: informers(),
      election: identity === undefined ? undefined : { identity, leases: program.leases },
      attention: attention(),
      hotLoops: new Map(program.controllers.map(({ name, hotLoops }) => [name, hotLoops.length])),
      installCommand: installCommand ?? 'kubectl apply -f crds/',
      checkCommand,
    });
  const recorder = new StatusHistory(clock, () => {
    const { counts } = attention();
    const totals = program.controllers.map((controller) => history.totals(controller.name));
    const sum = (values: readonly number[]) => values.reduce((all, value) => all + value, 0);
    return {
      isReady: readiness.every(({ check }) => check() === undefined),
      syncs: sum(totals.map(({ syncs }) => syncs)),
      failures: sum(totals.map(({ failures }) => failures)),
      notReady: sum(Array.from(counts.values(), (count) => count.notReady + count.stalled)),
      waiting: sum(program.controllers.map(({ queue }) => queue.snapshot({ limit: 0 }).readyCount)),
    };
  });
  const pages = new Map([
    ...queuePages({
      controllers,
      history,
      clock,
      owner: (key) => ownerOf(program, key),
      redact,
    }),
    ...statusPage({
      clock,
      name,
      version,
      informers,
      election: identity === undefined ? undefined : { identity, leases: () => program.leases },
      verdict,
      redact,
    }),
    ...recorder.pages,
    ...cachePage(informers),
    ...objectPage({ informers, events: () => program.recentEvents, controllers }),
    ...debugPage(['controllers']),
  ]);
  return { pages, recorder };
}

/** Returns the Lease of the leader, or of the shard of a key. */
function ownerOf(
  { leadership, leases, identity }: Pick<ControllerProgram, 'leadership' | 'leases' | 'identity'>,
  key: ObjectKey,
): KeyOwner | undefined {
  const end = leadership instanceof Shards ? `-${leadership.shardOf(key)}` : '';
  const found = leases.find(({ lease }) => lease.endsWith(end));
  if (!found) return undefined;
  const { lease, holder } = found;
  return { lease, holder, isThisProcess: holder === identity };
}

/** Options of `programPages`. */
export interface ProgramPagesOptions {
  readonly clock: Clock;
  readonly history: SyncHistory;
  readonly name: string | undefined;
  readonly version: string;
  /**
   * Command that installs the CustomResourceDefinitions of the program.
   * @default 'kubectl apply -f crds/'
   */
  readonly installCommand?: string | undefined;
  /**
   * Command that prints the missing permissions of the program.
   * @default none
   */
  readonly checkCommand?: string | undefined;
  readonly redact: ((text: string) => string) | undefined;
}

/** The options of `controllerManager` that concern its debug pages. */
interface DebuggingOptions {
  readonly name?: string | undefined;
  readonly debug?: DebugOptions | undefined;
  readonly metrics?: Metrics | undefined;
  readonly history?: SyncHistory | undefined;
}

interface Debugging {
  readonly metrics: Metrics | undefined;
  readonly history: SyncHistory | undefined;
  readonly serveDebug: (program: ControllerProgram) => Runnable[];
}

/** The data of debug pages is collected from the start, and served when the program is built. */
export function debugging(
  { name, debug, metrics, ...given }: DebuggingOptions,
  clock: Clock,
  log: Logger,
): Debugging {
  if (!debug) return { metrics, history: given.history, serveDebug: () => [] };
  checkOptions(debug, DEBUG_OPTIONS, 'debug');
  const { bindAddress, version = 'unknown', redact } = debug;
  if (!isLoopback(bindAddress)) {
    throw new RangeError(
      `debug.bindAddress must be a loopback address, as in 127.0.0.1:6060: got ${JSON.stringify(bindAddress)}. For other addresses, add an HttpServer with authorization by the option servers`,
    );
  }
  const registry = metrics ? undefined : createRegistry();
  const exposition = debug.expose ?? (registry && (() => expose(registry)));
  const history = given.history ?? new SyncHistory();
  return {
    metrics: registry ? metricsOf(registry) : metrics,
    history,
    serveDebug: (program) => {
      const { pages, recorder } = programPages(program, { clock, history, name, version, redact });
      const routes = { pages, metrics: exposition };
      return [new HttpServer({ log }, { name: 'debug', bindAddress, routes }), recorder];
    },
  };
}
