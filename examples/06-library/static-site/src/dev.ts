/**
 * Runs a cluster in this process with the CRDs, the samples and the controllers, until Ctrl-C. Prints the status
 * of the samples. Takes the flags of `src/main.ts`. Use dev.kubeconfig for kubectl. The objects are kept in the folder
 * .cluster: `npm start` restarts this program when a file of it is saved. Delete the folder for an empty cluster.
 *
 * `npm start -- --cluster=CONTEXT` runs the controllers on the cluster of a context of your kubeconfig instead. It prints
 * what it changes there, and removes it at Ctrl-C.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  Controller,
  done,
  HttpClient,
  runAll,
  runControllers,
  silentLogger,
  systemClock,
} from 'crd-controller';
import { applyManifests, parseManifests, readManifests } from 'crd-controller/apply';
import { runOnCluster, runProgram } from 'crd-controller/program';
import type { Condition, ControllerKit, KubernetesObject, Resource } from 'crd-controller';
import { ApiServer, Cluster } from 'crd-controller/testing';
import { program } from './program.ts';

if (process.argv.some((flag) => /^--cluster\b/.test(flag))) {
  await runOnCluster(program, { main: pathOf('src/main.ts'), crds: pathOf('deploy/crds') });
} else await runHere();

async function runHere(): Promise<void> {
  const server = new ApiServer({ dataDir: pathOf('.cluster') });
  const listening = await server.listen();
  const client = new HttpClient({ handler: server.handler, server: listening.url });
  await apply(client, 'deploy/crds');
  await apply(client, 'samples');
  const kubeconfig = pathOf('dev.kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
  process.stdout.write(
    `Cluster running in this process. To use kubectl:\n\n  export KUBECONFIG=${kubeconfig}\n\n`,
  );

  const stop = new AbortController();
  const others = runAll(
    [
      (signal) => new Cluster({ client, clock: systemClock, log: silentLogger }).run(signal),
      (signal) => runControllers({ client, controllers: statusPrinters }, signal),
    ],
    stop.signal,
  );
  try {
    await runProgram(program, [`--kubeconfig=${kubeconfig}`, ...process.argv.slice(2)]);
  } finally {
    stop.abort();
    await others;
    rmSync(kubeconfig, { force: true });
    await server.close();
  }
}

/** Applies the manifests in a folder. */
async function apply(client: HttpClient, folder: string): Promise<void> {
  const manifests = parseManifests(await readManifests([pathOf(folder)]));
  for await (const result of applyManifests(client, manifests)) {
    if (result.kind === 'rejected') throw new Error(result.rejection.message);
  }
}

/** Returns controllers that print the status of each object of a reconciled kind when it changes. */
function statusPrinters(kit: ControllerKit): Controller[] {
  return Object.entries(program.controllers).map(([name, { resource }]) => {
    const objects = kit.informers.for(resource as Resource<WithConditions>);
    const printed = new Map<string, string>();
    return new Controller(kit, {
      name: `${name}-status`,
      kind: resource.kind,
      sync: async (key) => {
        const object = objects.lister.get(key);
        const ready = object?.status?.conditions?.find(({ type }) => type === 'Ready');
        const state = object ? (ready?.message ?? 'created') : 'deleted';
        if (printed.get(key) !== state) process.stdout.write(`${resource.kind} ${key}: ${state}\n`);
        printed.set(key, state);
        return done();
      },
    }).for(objects);
  });
}

interface WithConditions extends KubernetesObject {
  readonly status?: { readonly conditions?: readonly Condition[] };
}

function pathOf(path: string): string {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}
