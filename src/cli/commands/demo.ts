import { EVENTS } from '../../api/builtin.ts';
import { CONTROLLERS, DEFAULT_CONTROLLERS } from '../../controllers/registry.ts';
import type { Logger } from '../../util/logger.ts';
import { systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { runAll } from '../../util/runnable.ts';
import { untilAborted } from '../../util/abort.ts';
import type { World } from '../command.ts';
import { Kubectl } from '../demo/kubectl.ts';
import { Narrator } from '../demo/narrator.ts';
import type { Scene } from '../demo/scene.ts';
import { selectScenes } from '../demo/scenes.ts';
import { Stage } from '../demo/stage.ts';
import { Story } from '../demo/story.ts';
import { recordings } from '../demo/view.ts';
import { watchedWith } from '../demo/watched.ts';
import type { EmbeddedCluster } from '../embedded-cluster.ts';
import { startEmbeddedCluster } from '../embedded-cluster.ts';
import { EXIT_FAILURE, EXIT_OK } from '../exit-codes.ts';
import { parseFlags } from '../flags/flag-parser.ts';
import { temporaryKubeconfig } from '../kubeconfig-file.ts';
import { createLogger, standardError } from '../logs/logging.ts';
import type { OptionValues } from '../flags/option.ts';
import type { DEMO_OPTIONS } from '../flags/command-options.ts';
import { RUN_OPTIONS } from '../flags/run-options.ts';
import { packageRoot } from '../package.ts';
import { runConfig } from '../run-config.ts';
import { runController } from './run.ts';
import { exportLine } from './serve.ts';

/** How long Pods take to come and to go: long enough to be watched, in milliseconds. */
const KUBELET = { startupMs: 600, terminationMs: 400 };

const NAMESPACE = 'default';

/**
 * The whole system in one process, over the wire as in production: an API server with TLS, what a
 * cluster has besides, the daemon with a kubeconfig of its own, and a user. Tells what happens and
 * checks what it tells.
 *
 * @throws {UsageError} if a controller is to be shown that there is not
 */
export async function demo(
  flags: OptionValues<typeof DEMO_OPTIONS>,
  world: World,
): Promise<number> {
  const { logging, signal, print, colour } = world;
  const scenes = selectScenes(flags.only);
  const narrator = new Narrator({ print, colour, monotonic: () => systemClock.monotonic() });
  const scenery = createLogger({ ...logging, verbosity: logging.verbosity - 2 });
  const cluster = await startEmbeddedCluster({ host: '127.0.0.1', port: 0 }, scenery);
  const curtain = new AbortController();
  try {
    const kubeconfig = await temporaryKubeconfig(cluster.kubeconfig);
    try {
      const performance = { cluster, kubeconfig: kubeconfig.path, narrator, scenes, world };
      await runAll(
        [
          (stop) => cluster.runControllers(stop, { kubelet: KUBELET }),
          async (stop) => {
            await perform({ ...performance, keep: flags.keep }, stop);
            curtain.abort();
          },
        ],
        AbortSignal.any([signal, curtain.signal]),
      );
    } finally {
      await kubeconfig.remove();
    }
  } catch (error) {
    if (signal.aborted) throw new Error('The demo was interrupted', { cause: error });
    throw error;
  } finally {
    await cluster.close();
  }
  return narrator.failed === 0 ? EXIT_OK : EXIT_FAILURE;
}

interface Performance {
  readonly cluster: EmbeddedCluster;
  /** Path of the kubeconfig. */
  readonly kubeconfig: string;
  readonly narrator: Narrator;
  readonly scenes: readonly Scene[];
  readonly keep: boolean;
  readonly world: World;
}

async function perform(performance: Performance, signal: AbortSignal): Promise<void> {
  const { cluster, narrator, scenes } = performance;
  const connection = cluster.connect('kubectl');
  const { client } = connection;
  const clock = systemClock;
  const onChange = (text: string) => narrator.moment(text);
  const watched = watchedWith(scenes.flatMap(({ kinds }) => kinds));
  const stage = new Stage({ client, clock, onChange }, NAMESPACE, watched);
  const at = { root: packageRoot(), namespace: NAMESPACE };
  const kubectl = new Kubectl({ client, clock, narrator, signal, ...at });
  const revision = () => cluster.revision;
  const story = new Story({ client, clock, kubectl, narrator, stage, revision }, scenes);
  try {
    narrator.note(`Kubernetes API server in this process, over HTTPS: ${cluster.url}`);
    if (await story.install(signal)) await performWithDaemon(performance, story, stage, signal);
    narrator.figures([
      `${stage.podsSeen} Pods created`,
      `${recordings(stage.view(EVENTS).values())} events`,
      `${cluster.requests} requests`,
    ]);
  } finally {
    await connection.close();
  }
}

async function performWithDaemon(
  { narrator, scenes, keep, kubeconfig, world }: Performance,
  story: Story,
  stage: Stage,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const { log, errors } = daemonLog(world, scenes);
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--controllers=${scenes.map(({ name }) => name).join(',')}`,
  ];
  let stopMs = 0;
  narrator.heading('Start the daemon, as in production');
  narrator.command(`crd-controller ${args.join(' ')}`);
  await runAll(
    [
      (ended) => stage.run(ended),
      (ended) => runDaemon(args, log, ended),
      async (ended) => {
        const succeeded = await story.play(ended);
        if (succeeded && keep && (await story.leave(ended))) {
          world.print(`\n${exportLine(kubeconfig)}\n`);
          narrator.note('Try kubectl get, scale, edit, describe and delete. Press Ctrl-C to stop.');
          await untilAborted(ended);
        }
        stopMs = systemClock.monotonic();
        stop.abort(new Error('The demo has ended'));
      },
    ],
    AbortSignal.any([signal, stop.signal]),
  );
  const tookMs = Math.round(systemClock.monotonic() - stopMs);
  narrator.heading('Stop the daemon');
  narrator.verdict(`The daemon stops within ${formatDuration(tookMs)}`);
  const count = errors();
  narrator.verdict(
    'The daemon logged no unexpected error',
    count === 0 ? undefined : `it logged ${count}; run the demo with -v=2 for details`,
  );
}

async function runDaemon(args: readonly string[], log: Logger, signal: AbortSignal): Promise<void> {
  const flags = parseFlags(RUN_OPTIONS, args, {});
  await runController(
    runConfig(flags, { all: [...CONTROLLERS.keys()], onByDefault: DEFAULT_CONTROLLERS }),
    { log, signal, environment: {} },
  );
}

/**
 * The daemon's log: errors alone, unless the user wants to see it. Counts the errors that no scene
 * is about; those that one is about are not shown either.
 */
function daemonLog(
  { logging }: World,
  scenes: readonly Scene[],
): { readonly log: Logger; readonly errors: () => number } {
  let errors = 0;
  const out = standardError();
  const isQuiet = logging.verbosity === 0;
  const log = createLogger(
    { ...logging, verbosity: isQuiet ? -1 : logging.verbosity },
    {
      ...out,
      write: (line, severity, notice) => {
        const isExpected = scenes.some(({ complaint }) => complaint?.test(line));
        if (severity === 'error' && !isExpected) errors++;
        if (!isQuiet || !isExpected) out.write(line, severity, notice);
      },
    },
  );
  return { log, errors: () => errors };
}
