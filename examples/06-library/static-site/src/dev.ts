/**
 * A cluster in this process, with the CRD, the sample and the controller, until Ctrl-C. It tells what
 * becomes of the sample; dev.kubeconfig is for kubectl. Nothing is kept.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  Controller,
  CUSTOM_RESOURCE_DEFINITIONS,
  done,
  HttpClient,
  runAll,
  runControllers,
  silentLogger,
  systemClock,
  terminationSignal,
  textLogger,
} from 'crd-controller';
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
  `A cluster in this process; for kubectl:\n\n  export KUBECONFIG=${kubeconfig}\n\n`,
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
  return [staticSiteController(kit), narrator(kit)];
}

/** Tells what the status of each StaticSite says, as it changes. */
function narrator(kit: ControllerKit): Controller {
  const owners = kit.informers.for(STATIC_SITES);
  const told = new Map<string, string>();
  return new Controller(kit, {
    name: 'narrator',
    kind: STATIC_SITES.kind,
    sync: async (key) => {
      const owner = owners.lister.get(key);
      const ready = owner?.status?.conditions?.find(({ type }) => type === 'Ready');
      const state = owner ? (ready?.message ?? 'is new') : 'is gone';
      if (told.get(key) !== state) process.stdout.write(`StaticSite ${key}: ${state}\n`);
      told.set(key, state);
      return done();
    },
  }).for(owners);
}

function load(path: string) {
  return parse(readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'));
}
