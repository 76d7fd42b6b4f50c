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
 * `restart` replaces the controllers, as a new leader does. At the end of the test they are restarted once more,
 * because the first syncs of a new leader may need other permissions, and stop.
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
  const running = new Cluster({ client, clock, log: silentLogger }).run(stop.signal);
  const handler = await role.handler(server);
  const run = () => {
    const term = new AbortController();
    const ended = runControllers(
      { client: connect(handler), clock, freeze: true, controllers },
      term.signal,
    );
    return async () => {
      term.abort();
      await clock.advance(60_000);
      await ended;
    };
  };
  let stopControllers = run();
  const restart = async () => {
    await stopControllers();
    stopControllers = run();
    await clock.advance(10_000);
  };
  context.after(async () => {
    await restart();
    await stopControllers();
    stop.abort();
    await clock.advance(60_000);
    await running;
  });
  return { clock, server, client, restart };
}

/** Returns the object in a YAML file. */
export function load(path: string) {
  return parse(readFileSync(new URL(path, PROJECT), 'utf8'));
}
