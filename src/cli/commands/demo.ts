import { CONTROLLERS, DEFAULT_CONTROLLERS } from '../../controllers/registry.ts';
import type { Logger } from '../../util/logger.ts';
import { systemClock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import { runAll } from '../../util/run-all.ts';
import { untilAborted } from '../../util/until-aborted.ts';
import type { World } from '../command.ts';
import { Kubectl } from '../demo/kubectl.ts';
import { Narrator } from '../demo/narrator.ts';
import { Scene } from '../demo/scene.ts';
import { NAMESPACE, Story } from '../demo/story.ts';
import type { EmbeddedCluster } from '../embedded-cluster.ts';
import { startEmbeddedCluster } from '../embedded-cluster.ts';
import { EXIT_FAILURE, EXIT_OK } from '../exit-codes.ts';
import { parseFlags } from '../flag-parser.ts';
import { temporaryKubeconfig } from '../kubeconfig-file.ts';
import { createLogger, standardError } from '../logging.ts';
import type { OptionValues } from '../option.ts';
import type { DEMO_OPTIONS } from '../options.ts';
import { RUN_OPTIONS } from '../options.ts';
import { packageRoot } from '../package.ts';
import { runConfig } from '../run-config.ts';
import { runController } from './run.ts';
import { exportLine } from './serve.ts';

/** How long Pods take to come and to go: long enough to be watched, in milliseconds. */
const KUBELET = { startupMs: 1500, terminationMs: 1000 };

/**
 * The whole system in one process, over the wire as in production: an API server with TLS, what a
 * cluster has besides, the daemon with a kubeconfig of its own, and a user. Tells what happens and
 * checks what it tells.
 */
export async function demo(
  flags: OptionValues<typeof DEMO_OPTIONS>,
  world: World,
): Promise<number> {
  const { logging, signal, print, colour } = world;
  const narrator = new Narrator({ print, colour, monotonic: () => systemClock.monotonic() });
  const scenery = createLogger({ ...logging, verbosity: logging.verbosity - 2 });
  const cluster = await startEmbeddedCluster({ host: '127.0.0.1', port: 0 }, scenery);
  const curtain = new AbortController();
  try {
    const kubeconfig = await temporaryKubeconfig(cluster.kubeconfig);
    try {
      await runAll(
        [
          (stop) => cluster.runControllers(stop, { kubelet: KUBELET }),
          async (stop) => {
            await perform(
              { cluster, kubeconfig: kubeconfig.path, narrator, keep: flags.keep, world },
              stop,
            );
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
  readonly keep: boolean;
  readonly world: World;
}

async function perform(performance: Performance, signal: AbortSignal): Promise<void> {
  const { cluster, narrator } = performance;
  const connection = cluster.connect('kubectl');
  const { client } = connection;
  const onChange = (text: string) => narrator.moment(text);
  const scene = new Scene({ client, clock: systemClock, onChange }, NAMESPACE);
  const story = new Story({
    client,
    clock: systemClock,
    kubectl: new Kubectl(client),
    narrator,
    scene,
    root: packageRoot(),
    revision: () => cluster.revision,
  });
  try {
    narrator.note(`A Kubernetes API server in this process, over HTTPS: ${cluster.url}`);
    if (await story.install(signal)) await performWithDaemon(performance, story, scene, signal);
    narrator.figures([
      `${scene.podsSeen} Pods came`,
      `${scene.recordings()} events`,
      `${cluster.requests} requests`,
    ]);
  } finally {
    await connection.close();
  }
}

async function performWithDaemon(
  { narrator, keep, kubeconfig, world }: Performance,
  story: Story,
  scene: Scene,
  signal: AbortSignal,
): Promise<void> {
  const stop = new AbortController();
  const { log, errors } = daemonLog(world);
  let stopMs = 0;
  narrator.heading('The daemon, as in production');
  narrator.command(`crd-controller --kubeconfig=${kubeconfig}`);
  await runAll(
    [
      (ended) => scene.run(ended),
      (ended) => runDaemon(kubeconfig, log, ended),
      async (ended) => {
        const succeeded = await story.play(ended);
        if (succeeded && keep) {
          await story.leave(ended);
          world.print(`\n${exportLine(kubeconfig)}\n`);
          narrator.note('Try kubectl get, scale, edit, describe, delete. Ctrl-C ends it.');
          await untilAborted(ended);
        }
        stopMs = systemClock.monotonic();
        stop.abort(new Error('The story is over'));
      },
    ],
    AbortSignal.any([signal, stop.signal]),
  );
  const tookMs = Math.round(systemClock.monotonic() - stopMs);
  narrator.verdict(`The daemon stopped when asked to, in ${formatDuration(tookMs)}`);
  const count = errors();
  narrator.verdict(
    'It logged no error',
    count === 0 ? undefined : `it logged ${count}; run the demo with -v=2 to see more`,
  );
}

async function runDaemon(kubeconfig: string, log: Logger, signal: AbortSignal): Promise<void> {
  const flags = parseFlags(RUN_OPTIONS, [`--kubeconfig=${kubeconfig}`], {});
  await runController(
    runConfig(flags, { all: [...CONTROLLERS.keys()], onByDefault: DEFAULT_CONTROLLERS }),
    { log, signal, environment: {} },
  );
}

/** The daemon's log: errors alone, unless the user wants to see it. Counts the errors. */
function daemonLog({ logging }: World): { readonly log: Logger; readonly errors: () => number } {
  let errors = 0;
  const out = standardError();
  const log = createLogger(
    { ...logging, verbosity: logging.verbosity || -1 },
    {
      ...out,
      write: (line, severity) => {
        if (severity === 'error') errors++;
        out.write(line, severity);
      },
    },
  );
  return { log, errors: () => errors };
}
