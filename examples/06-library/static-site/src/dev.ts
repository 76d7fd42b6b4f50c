/**
 * Runs a cluster in this process with the CRD, the sample and the controller, until Ctrl-C. Prints the
 * status of the sample. Use dev.kubeconfig for kubectl. The data is lost when the process ends.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  Controller,
  done,
  HttpClient,
  runAll,
  runControllers,
  silentLogger,
  systemClock,
  terminationSignal,
  textLogger,
} from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import type { ControllerKit } from 'crd-controller';
import { ApiServer, Cluster } from 'crd-controller/testing';
import { parse } from 'yaml';
import { staticSiteController } from './controller.ts';
import { STATIC_SITES } from './generated/static-site.ts';

const kubeconfig = fileURLToPath(new URL('../dev.kubeconfig', import.meta.url));
const log = textLogger();
const server = new ApiServer({ log });
const listening = await server.listen();
const client = new HttpClient({ handler: server.handler, server: listening.url });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, load('crds/staticsites.example.com.yaml'));
await client.create(STATIC_SITES, load('samples/static-site.yaml'));
writeFileSync(kubeconfig, JSON.stringify(listening.kubeconfig()), { mode: 0o600 });
process.stdout.write(
  `Cluster running in this process. To use kubectl:\n\n  export KUBECONFIG=${kubeconfig}\n\n`,
);

const { signal } = terminationSignal(process, log);
try {
  await runAll(
    [
      (signal) => new Cluster({ client, clock: systemClock, log: silentLogger }).run(signal),
      (signal) => runControllers({ client, log, controllers }, signal),
    ],
    signal,
  );
} finally {
  rmSync(kubeconfig, { force: true });
  await server.close();
}

function controllers(kit: ControllerKit): Controller[] {
  return [staticSiteController(kit), statusPrinter(kit)];
}

/** Prints the status of each StaticSite when it changes. */
function statusPrinter(kit: ControllerKit): Controller {
  const owners = kit.informers.for(STATIC_SITES);
  const printed = new Map<string, string>();
  return new Controller(kit, {
    name: 'status-printer',
    kind: STATIC_SITES.kind,
    sync: async (key) => {
      const owner = owners.lister.get(key);
      const ready = owner?.status?.conditions?.find(({ type }) => type === 'Ready');
      const state = owner ? (ready?.message ?? 'created') : 'deleted';
      if (printed.get(key) !== state) process.stdout.write(`StaticSite ${key}: ${state}\n`);
      printed.set(key, state);
      return done();
    },
  }).for(owners);
}

function load(path: string) {
  return parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
}
