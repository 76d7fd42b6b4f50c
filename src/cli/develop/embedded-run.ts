import { rm, writeFile } from 'node:fs/promises';
import type { Condition } from '../../api/conditions.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Resource } from '../../api/resource.ts';
import { applyManifests } from '../../client/apply/apply.ts';
import { readManifests } from '../../client/apply/manifest-files.ts';
import { parseManifests } from '../../client/apply/manifest.ts';
import { HttpClient } from '../../client/http-client.ts';
import { Cluster } from '../../cluster/cluster.ts';
import type { ControllerKit } from '../../manager/controller-kit.ts';
import { Controller } from '../../manager/controller.ts';
import { controllerManager } from '../../manager/run-controllers.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/logger.ts';
import { runAll } from '../../util/runnable.ts';
import { installWebhooks } from '../../webhook/install.ts';
import type { Webhooks } from '../../webhook/webhooks.ts';
import { done } from '../../workqueue/outcome.ts';
import { commandLine } from '../command-line.ts';
import { createServer } from '../embedded/embedded-cluster.ts';
import { flagValues } from '../program/program.ts';
import type { ProgramOptions } from '../program/program.ts';

/** Files of a project for `runOnEmbeddedCluster`. */
export interface RunOnEmbeddedClusterOptions {
  /** Folder of the CRDs. */
  readonly crds: string;
  /** Folder of the objects that are applied after the CRDs. */
  readonly samples: string;
  /** Folder that keeps the objects of the cluster. */
  readonly dataDir: string;
  /** Kubeconfig that is written for kubectl, and removed at the end. */
  readonly kubeconfig: string;
  /**
   * Flags of the program.
   * @default those of this process
   */
  readonly argv?: readonly string[];
}

/** Runs a program on an embedded cluster, as `runOnEmbeddedCluster` does, and returns its exit code. */
export async function embeddedRun(
  program: ProgramOptions,
  options: RunOnEmbeddedClusterOptions,
): Promise<number> {
  const { crds, samples, dataDir, kubeconfig, argv = process.argv.slice(2) } = options;
  const server = createServer({ dataDir });
  try {
    const listening = await server.listen();
    const client = new HttpClient({ handler: server.handler, server: listening.url });
    await applyFolder(client, crds);
    let webhooks: Webhooks | undefined;
    const printers = controllerManager({
      client,
      controllers: (kit) => {
        webhooks = webhooksOf(program, kit);
        return statusPrinters(program, kit);
      },
    });
    // The server calls the functions in this process, without a connection.
    if (webhooks) await installWebhooks(server, client, webhooks);
    await applyFolder(client, samples);
    await writeFile(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
    print(
      `Cluster running in this process. To use kubectl:\n\n  export KUBECONFIG=${kubeconfig}\n`,
    );
    const stop = new AbortController();
    const others = runAll(
      [
        (signal) => new Cluster({ client, clock: systemClock, log: silentLogger }).run(signal),
        (signal) => printers.run(signal),
      ],
      stop.signal,
    );
    const flags = [`--kubeconfig=${kubeconfig}`, ...(webhooks ? ['--webhook-bind-address=0'] : [])];
    try {
      return await commandLine(program, [...flags, ...argv], process.env);
    } finally {
      stop.abort();
      await others;
      await rm(kubeconfig, { force: true });
    }
  } finally {
    await server.close();
  }
}

function webhooksOf(program: ProgramOptions, kit: ControllerKit): Webhooks | undefined {
  const { webhooks } = program;
  return typeof webhooks === 'function' ? webhooks(kit, flagValues(program, {})) : webhooks;
}

async function applyFolder(client: HttpClient, folder: string): Promise<void> {
  const manifests = parseManifests(await readManifests([folder]));
  for await (const result of applyManifests(client, manifests)) {
    if (result.kind === 'rejected') throw new Error(result.rejection.message);
  }
}

/** Returns controllers that print the status of each object of a reconciled kind when it changes. */
function statusPrinters({ controllers }: ProgramOptions, kit: ControllerKit): Controller[] {
  return Object.entries(controllers).map(([name, { resource }]) => {
    const objects = kit.informers.for(resource as Resource<WithConditions>);
    const printed = new Map<string, string>();
    return new Controller(kit, {
      name: `${name}-status`,
      kind: resource.kind,
      sync: async (key) => {
        const object = objects.lister.get(key);
        const ready = object?.status?.conditions?.find(({ type }) => type === 'Ready');
        const state = object ? (ready?.message ?? 'created') : 'deleted';
        if (printed.get(key) !== state) print(`${resource.kind} ${key}: ${state}`);
        printed.set(key, state);
        return done();
      },
    }).for(objects);
  });
}

interface WithConditions extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
