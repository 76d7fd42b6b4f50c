import { globSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { HttpClient, runControllers, silentLogger, withReadiness } from 'crd-controller';
import type { Condition, ControllerKit, KubernetesObject, Resource } from 'crd-controller';
import { flagValues } from 'crd-controller/program';
import type { FlagValues } from 'crd-controller/program';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import { ApiServer, Cluster, FakeClock, FakeFetch, TestedRole } from 'crd-controller/testing';
import { parse } from 'yaml';
import { program } from '../src/program.ts';

const PROJECT = new URL('../', import.meta.url);
const ROLES = new Map<string, TestedRole>();

/** Returns the ClusterRole of a controller, with which `startCluster` runs it. */
export function roleOf(controller: string): TestedRole {
  const file = new URL(`deploy/rbac/controllers/${controller}.yaml`, PROJECT);
  const role =
    ROLES.get(controller) ??
    new TestedRole(file, [new URL('deploy/rbac/events/events.yaml', PROJECT)]);
  ROLES.set(controller, role);
  return role;
}

/**
 * Starts an API server with the CRDs, cluster controllers, and controllers of the program, each with its role, in virtual
 * time. `service` is a stand-in for the services that they call. `stopControllers` and `startControllers` take 60 s and
 * 10 s; `restart` does both, as when another replica becomes the leader. At the end of the test the controllers are
 * restarted once more, because the first syncs of a new leader may need other permissions, and stop.
 *
 * @param names names of the controllers in `src/program.ts`
 */
export function startCluster(context: TestContext, ...names: readonly string[]) {
  return startWithFlags(context, {}, ...names);
}

/** Values of some of the program's own flags. The others have their defaults. */
type Flags = Partial<FlagValues<NonNullable<typeof program.flags>>>;

/** Returns the function that builds the controller of this name in `src/program.ts`, for `explore`. */
export function controllerOf(name: string, flags: Flags = {}) {
  const build = program.controllers[name]?.build;
  if (!build) throw new Error(`src/program.ts has no controller ${name}`);
  return (kit: ControllerKit) => [build(kit, flagValues(program, flags))].flat();
}

/** The same as `startCluster`, with some values of the program's own flags instead of their defaults. */
export async function startWithFlags(
  context: TestContext,
  flags: Flags,
  ...names: readonly string[]
) {
  const print = (line: string) => context.diagnostic(line);
  const service = new FakeFetch();
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
  const programs = await Promise.all(
    names.map(async (name) => {
      const controllers = controllerOf(name, flags);
      const handler = await roleOf(name).handler(server, print);
      return { controllers, handler };
    }),
  );
  const run = () => {
    const term = new AbortController();
    const ended = Promise.all(
      programs.map(({ controllers, handler }) =>
        runControllers(
          {
            client: connect(handler),
            clock,
            fetch: service.fetch,
            freeze: true,
            controllers,
          },
          term.signal,
        ),
      ),
    );
    return async () => {
      term.abort();
      await clock.advance(60_000);
      await ended;
    };
  };
  let stopRunning: ReturnType<typeof run> | undefined = run();
  const stopControllers = async () => {
    await stopRunning?.();
    stopRunning = undefined;
  };
  const startControllers = async () => {
    stopRunning ??= run();
    await clock.advance(10_000);
  };
  const restart = async () => {
    await stopControllers();
    await startControllers();
  };
  context.after(async () => {
    await restart();
    await stopControllers();
    stop.abort();
    await clock.advance(60_000);
    await running;
  });
  return {
    clock,
    server,
    client,
    service,
    stopControllers,
    startControllers,
    restart,
    sampleOf: <T extends WithConditions>(resource: Resource<T>) =>
      sampleOf(client, clock, resource, print),
  };
}

interface WithConditions extends KubernetesObject {
  status?: { conditions?: Condition[] };
}

/** Returns functions for the object of a kind in `samples/`. */
function sampleOf<T extends WithConditions>(
  client: HttpClient,
  clock: FakeClock,
  resource: Resource<T>,
  print: (line: string) => void,
) {
  const { kind } = resource;
  const samples = globSync('samples/*.yaml', { cwd: fileURLToPath(PROJECT) }).map(load);
  const draft = samples.find((sample) => sample.kind === kind);
  if (!draft) throw new Error(`samples/ has no ${kind}`);
  const { metadata } = draft;
  const get = () => client.get(resource, metadata);
  const create = (spec: object = {}) =>
    client.create(resource, { ...draft, spec: { ...draft.spec, ...spec } });
  return {
    get,
    /** Creates the object, with some fields of its spec replaced. */
    create,
    /** Replaces some fields of the spec. */
    change: (spec: object) =>
      client.patch(resource as Resource, metadata, { type: 'merge', body: { spec } }),
    delete: () => client.delete(resource, metadata),
    /** Returns the reason of the condition Ready after a time in milliseconds. Prints why a sync failed. */
    ready: async (afterMs: number) => {
      await clock.advance(afterMs);
      const { status } = await get();
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      if (ready?.reason === 'SyncFailed') print(`SyncFailed: ${ready.message}`);
      return ready?.reason;
    },
    /** Creates the object with the condition Ready, for a kind whose controller does not run in the test. */
    createReady: async (spec: object = {}) => {
      const { generation = 1 } = (await create(spec)).metadata;
      const ready = { kind: 'ready', reason: 'Test', message: '' } as const;
      const conditions = withReadiness([], ready, generation, clock.now());
      const body = { status: { observedGeneration: generation, conditions } };
      const options = { subresource: 'status' };
      await client.patch(resource as Resource, metadata, { type: 'merge', body }, options);
    },
  };
}

/** Returns the object in a YAML file. */
export function load(path: string) {
  return parse(readFileSync(new URL(path, PROJECT), 'utf8'));
}
