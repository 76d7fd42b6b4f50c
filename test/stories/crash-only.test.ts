import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { COUNTS } from '../../src/api/generated/count.ts';
import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/until-aborted.ts';
import { Simulation } from '../support/simulation.ts';

/** What happens to a Count while the daemon is about to be killed. */
interface Scenario {
  readonly name: string;
  /** State before the daemon that will be killed starts; reached by an undisturbed one. */
  readonly before?: { readonly count: number; readonly image: string };
  /** The change that the killed daemon was working on. */
  readonly change: (world: Simulation) => Promise<void>;
  /** How many ready Pods there are in the end; undefined: no Count. */
  readonly ready: number | undefined;
}

const SCENARIOS: readonly Scenario[] = [
  { name: 'a new Count', change: (world) => world.applyCount({ count: 3 }), ready: 3 },
  {
    name: 'scaling up',
    before: { count: 1, image: 'nginx' },
    change: (world) => world.patchCount({ count: 4 }),
    ready: 4,
  },
  {
    name: 'scaling down',
    before: { count: 4, image: 'nginx' },
    change: (world) => world.patchCount({ count: 1 }),
    ready: 1,
  },
  {
    name: 'another image',
    before: { count: 2, image: 'nginx:1' },
    change: (world) => world.patchCount({ name: 'nginx:2' }),
    ready: 2,
  },
  {
    name: 'deletion',
    before: { count: 3, image: 'nginx' },
    change: (world) => world.client.delete(COUNTS, world.at),
    ready: undefined,
  },
];

/** Where a daemon dies: at its n-th request, which the server either never sees or carries out. */
interface Death {
  readonly atRequest: number;
  readonly when: 'before' | 'after';
}

/**
 * A process that dies at a request hears nothing any more and says nothing any more; from outside
 * it is simply gone.
 */
function mortal(death: Death, requests: { count: number }, onDeath: () => void) {
  const silence = async ({ signal }: HttpRequest): Promise<never> => {
    await (signal ? untilAborted(signal) : new Promise(() => undefined));
    throw signal?.reason;
  };
  let dead = false;
  return (handler: HttpHandler): HttpHandler =>
    async (request) => {
      if (dead) return silence(request);
      if (++requests.count < death.atRequest) {
        const response = await handler(request);
        return dead ? silence(request) : response;
      }
      dead = true;
      if (death.when === 'after') await handler(request);
      onDeath();
      return silence(request);
    };
}

interface Outcome {
  readonly pods: readonly string[];
  readonly status: unknown;
  readonly synced: readonly string[];
  readonly warnings: readonly string[];
}

/** What a user finds in the end, without what differs from run to run. */
async function outcomeOf(world: Simulation, { ready }: Scenario): Promise<Outcome> {
  const pods = (await world.pods()).map(
    ({ metadata, spec, status }) =>
      `${metadata.name} ${spec?.containers[0]?.image} ${status?.phase} of ${metadata.ownerReferences?.map(({ uid }) => uid).join()}`,
  );
  const events = await world.events();
  const count = ready === undefined ? undefined : await world.count();
  return {
    pods: pods.toSorted(),
    status: {
      ...count?.status,
      conditions: count?.status?.conditions?.map(({ type, status, reason, message }) =>
        [type, status, reason, message].join(' '),
      ),
    },
    synced: events.filter((event) => event.startsWith('Synced')),
    warnings: events.filter((event) => /^(Failed|Err)/.test(event)),
  };
}

/** Plays the scenario; with a death, a second daemon takes over from the one that died. */
async function play(
  scenario: Scenario,
  death: Death | undefined,
): Promise<{ outcome: Outcome; requests: number; died: boolean }> {
  const world = new Simulation();
  world.startCluster();
  await world.installCrd();
  if (scenario.before) {
    const stop = world.startDaemon();
    await world.applyCount({ count: scenario.before.count, name: scenario.before.image });
    await world.untilReady(scenario.before.count);
    await world.settle();
    await stop();
  }
  const requests = { count: 0 };
  let died = false;
  const never = { atRequest: Infinity, when: 'before' } as const;
  const around = mortal(death ?? never, requests, () => (died = true));
  world.startDaemonBehind(around, { gracefulShutdownTimeoutMs: 0 });
  await world.pass(death ? 0 : 100);
  await scenario.change(world);
  if (death) {
    await world.pass(3000);
    if (died) world.startDaemon();
  }
  if (scenario.ready === undefined) {
    await world.until('no Pods', async () => (await world.pods()).length === 0);
  } else {
    await world.untilReady(scenario.ready);
  }
  await world.settle();
  const outcome = await outcomeOf(world, scenario);
  await world.end();
  return { outcome, requests: requests.count, died };
}

describe('given a daemon that is killed at any of its requests', () => {
  for (const scenario of SCENARIOS) {
    it(`during ${scenario.name}, its successor ends where an undisturbed one would`, async () => {
      const undisturbed = await play(scenario, undefined);
      let deaths = 0;
      for (let atRequest = 1; atRequest <= undisturbed.requests; atRequest++) {
        for (const when of ['before', 'after'] as const) {
          const { outcome, died } = await play(scenario, { atRequest, when });
          if (died) deaths++;
          assert.deepEqual(outcome, undisturbed.outcome, `killed ${when} request ${atRequest}`);
        }
      }
      assert.ok(
        deaths >= undisturbed.requests,
        `${deaths} deaths at ${undisturbed.requests} requests`,
      );
    });
  }
});
