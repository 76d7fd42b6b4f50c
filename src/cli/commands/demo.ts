import { EVENTS } from '../../api/builtin.ts';
import type { Logger } from '../../util/logger.ts';
import { systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { runAll } from '../../util/runnable.ts';
import { untilAborted } from '../../util/abort.ts';
import type { CommandContext } from '../program/program.ts';
import { Kubectl } from '../demo/kubectl.ts';
import { DemoPrinter } from '../demo/demo-printer.ts';
import type { Scenario } from '../demo/scenario.ts';
import { selectScenarios, ScenarioRunner } from '../demo/scenario-runner.ts';
import { observedKinds, Observer, recordings } from '../demo/observer.ts';
import type { ServerOptions } from '../program/servers.ts';
import { debugPage } from '../../serving/page/debug-page.ts';
import type { EmbeddedCluster } from '../embedded/embedded-cluster.ts';
import { startEmbeddedCluster } from '../embedded/embedded-cluster.ts';
import { EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_OK } from '../common/errors.ts';
import { freePort } from '../common/free-port.ts';
import { parseFlags } from '../flags/flag-parser.ts';
import { temporaryKubeconfig } from '../embedded/kubeconfig-file.ts';
import { createLogger, standardError } from '../logs/logging.ts';
import type { OptionValues } from '../flags/option.ts';
import type { DEMO_OPTIONS } from '../flags/options.ts';
import { runOptions } from '../program/run-options.ts';
import { packageRoot } from '../program/package.ts';
import { runConfig } from '../program/run-config.ts';
import { run } from './run.ts';
import { exportLine } from './serve.ts';

/** Milliseconds in which Pods start and stop: long enough to be visible. */
const KUBELET = { startupMs: 600, terminationMs: 400 };

const NAMESPACE = 'default';

/**
 * Runs the whole system in one process, over HTTPS as in production: an API server, cluster controllers, the
 * program with its own kubeconfig, and a user. Prints what happens and checks the results.
 *
 * @returns 130 if the user interrupted it
 * @throws {UsageError} on an unknown controller
 */
export async function demo(
  flags: OptionValues<typeof DEMO_OPTIONS>,
  context: CommandContext,
): Promise<number> {
  const { logging, signal, print, colour } = context;
  const scenarios = selectScenarios(flags.only);
  const printer = new DemoPrinter({ print, colour, monotonic: () => systemClock.monotonic() });
  const clusterLog = createLogger({ ...logging, verbosity: logging.verbosity - 2 });
  const cluster = await startEmbeddedCluster({ host: '127.0.0.1', port: 0 }, clusterLog);
  const finished = new AbortController();
  try {
    const kubeconfig = await temporaryKubeconfig(cluster.kubeconfig());
    try {
      const web = flags.web
        ? { port: flags['web-port'] || (await freePort('127.0.0.1')) }
        : undefined;
      const demoRun = { cluster, kubeconfig: kubeconfig.path, printer, scenarios, web, context };
      await runAll(
        [
          // The demo shows the events of its own controllers.
          (stop) => cluster.runControllers(stop, { kubelet: KUBELET, controllers: ['-events'] }),
          async (stop) => {
            await runScenariosWithProgram(
              { ...demoRun, keep: flags.keep, record: flags.record },
              stop,
            );
            finished.abort();
          },
        ],
        AbortSignal.any([signal, finished.signal]),
      );
    } finally {
      await kubeconfig.remove();
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  } finally {
    await cluster.close();
  }
  if (printer.failed > 0) return EXIT_FAILURE;
  return signal.aborted ? EXIT_INTERRUPTED : EXIT_OK;
}

interface DemoRun {
  readonly cluster: EmbeddedCluster;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  readonly printer: DemoPrinter;
  readonly scenarios: readonly Scenario[];
  readonly keep: boolean;
  /** File of the recording; empty: none. */
  readonly record: string;
  /** Port of the page for a browser; undefined without one. */
  readonly web: { readonly port: number } | undefined;
  readonly context: CommandContext;
}

async function runScenariosWithProgram(demoRun: DemoRun, signal: AbortSignal): Promise<void> {
  const { cluster, printer, scenarios } = demoRun;
  const connection = cluster.connect('kubectl');
  const { client } = connection;
  const clock = systemClock;
  const onChange = (text: string) => printer.change(text);
  const observed = observedKinds(scenarios.flatMap(({ kinds }) => kinds));
  const observer = new Observer({ client, clock, onChange }, NAMESPACE, observed);
  const at = { root: packageRoot(), namespace: NAMESPACE };
  const kubectl = new Kubectl({ client, clock, printer, signal, ...at });
  const revision = () => cluster.revision;
  const runner = new ScenarioRunner(
    { client, clock, kubectl, printer, observer, revision },
    scenarios,
  );
  try {
    printer.note(`Kubernetes API server in this process, over HTTPS: ${cluster.url}`);
    if (await runner.installKinds(signal)) await runScenarios(demoRun, runner, observer, signal);
    printer.summary([
      `${observer.podsSeen} Pods created`,
      `${recordings(observer.view(EVENTS).values())} events`,
      `${cluster.requests} requests`,
    ]);
  } finally {
    await connection.close();
  }
}

async function runScenarios(
  { cluster, printer, scenarios, keep, record, kubeconfig, web, context }: DemoRun,
  runner: ScenarioRunner,
  observer: Observer,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const { log, errors } = programLog(context, scenarios);
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${scenarios.map(({ name }) => name).join(',')}`,
    ...(record ? [`--record=${record}`] : []),
    ...(web ? [`--debug-bind-address=127.0.0.1:${web.port}`] : []),
  ];
  let stopMs = 0;
  /** Errors until the user tries commands of their own, which are not judged. */
  let count: number | undefined;
  const page = web && `Open http://127.0.0.1:${web.port}/debug/ in a browser.`;
  printer.heading('Start the program, as in production');
  printer.command(`crd-controller ${args.join(' ')}`);
  if (page) context.print(page);
  await runAll(
    [
      (ended) => observer.run(ended),
      (ended) => runProgram(context, args, { log, debugRoutes: web && pageOf(cluster) }, ended),
      async (ended) => {
        const succeeded = await runner.run(ended);
        if (succeeded && keep && (await runner.applySamples(ended))) {
          count = errors();
          context.print(`\n${exportLine(kubeconfig)}\n`);
          if (page) context.print(page);
          printer.note('Try kubectl get, scale, edit, describe and delete. Press Ctrl-C to stop.');
          await untilAborted(ended);
        }
        stopMs = systemClock.monotonic();
        stop.abort(new Error('The demo has ended'));
      },
    ],
    AbortSignal.any([signal, stop.signal]),
  );
  const tookMs = Math.round(systemClock.monotonic() - stopMs);
  printer.heading('Stop the program');
  printer.check(`The program stops within ${formatDuration(tookMs)}`);
  count ??= errors();
  printer.check(
    'The program logged no unexpected error',
    count === 0 ? undefined : `it logged ${count}; run the demo with -v=2 for details`,
  );
}

async function runProgram(
  { program }: CommandContext,
  args: readonly string[],
  { log, debugRoutes }: { readonly log: Logger } & Pick<ServerOptions, 'debugRoutes'>,
  signal: AbortSignal,
): Promise<void> {
  const { values } = parseFlags(runOptions(program), args, { variables: {}, prefix: '' });
  await run(program, runConfig(values, program), {
    log,
    signal,
    environment: {},
    debugRoutes,
  });
}

/** The page shows the controllers and the cluster. */
function pageOf(cluster: EmbeddedCluster): ServerOptions['debugRoutes'] {
  const { pages, settings } = cluster.debugRoutes();
  return { pages: new Map([...pages, ...debugPage(['controllers', 'cluster'])]), settings };
}

/**
 * Creates the program's log. Without `-v` it shows errors only. Counts unexpected errors; errors that a
 * scenario expects are not shown.
 */
function programLog(
  { logging }: CommandContext,
  scenarios: readonly Scenario[],
): { readonly log: Logger; readonly errors: () => number } {
  let errors = 0;
  const out = standardError();
  const isQuiet = logging.verbosity === 0;
  const log = createLogger(
    { ...logging, verbosity: isQuiet ? -1 : logging.verbosity },
    {
      ...out,
      write: (line, severity, notice) => {
        const isExpected = scenarios.some(({ expectedErrors }) => expectedErrors?.test(line));
        if (severity === 'error' && !isExpected) errors++;
        if (!isQuiet || !isExpected) out.write(line, severity, notice);
      },
    },
  );
  return { log, errors: () => errors };
}
