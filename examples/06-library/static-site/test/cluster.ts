import { globSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { HttpClient, runControllers, silentLogger } from 'crd-controller';
import type { Controller, ControllerKit } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import { ApiServer, Cluster, FakeClock, TestedRole } from 'crd-controller/testing';
import { parse } from 'yaml';

const PROJECT = new URL('../', import.meta.url);

/** Returns the ClusterRole of a controller, with which `startCluster` runs it. */
export function roleOf(controller: string): TestedRole {
  const file = new URL(`deploy/rbac/controllers/${controller}.yaml`, PROJECT);
  return new TestedRole(file, [new URL('deploy/rbac/events/events.yaml', PROJECT)]);
}

/**
 * Starts an API server with the CRDs, cluster controllers, and the controllers with their role, in virtual time.
 * They stop at the end of the test.
 */
export async function startCluster(
  context: TestContext,
  role: TestedRole,
  controllers: (kit: ControllerKit) => Controller[],
) {
  const clock = new FakeClock();
  const server = new ApiServer({ clock });
  const connect = (handler: typeof server.handler) =>
    new HttpClient({ handler, server: 'https://test', clock });
  const client = connect(server.handler);
  for (const path of globSync('deploy/crds/*.yaml', { cwd: fileURLToPath(PROJECT) })) {
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, load(path));
  }
  const stop = new AbortController();
  const running = [
    new Cluster({ client, clock, log: silentLogger }).run(stop.signal),
    runControllers(
      { client: connect(await role.handler(server)), clock, freeze: true, controllers },
      stop.signal,
    ),
  ];
  context.after(async () => {
    stop.abort();
    await clock.advance(60_000);
    await Promise.all(running);
  });
  return { clock, server, client };
}

/** Returns the object in a YAML file. */
export function load(path: string) {
  return parse(readFileSync(new URL(path, PROJECT), 'utf8'));
}
