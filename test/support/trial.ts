import assert from 'node:assert/strict';
import { NODES, REPLICA_SETS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ConnectionReset } from '../../src/apiserver/faults.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { late } from './late.ts';
import { Life } from './life.ts';
import type { Death } from './life.ts';
import { Meddler } from './meddler.ts';
import type { Scenario } from './scenarios.ts';
import { Simulation } from './simulation.ts';

/** What befalls the daemon while it works on the change of a scenario. */
export interface Trouble {
  /** Every daemon dies there; the next one begins at once. */
  readonly death?: Death;
  /** The answer of every other write is lost. */
  readonly losesAnswers?: boolean;
  /** What watches say comes so many milliseconds late. */
  readonly lagMs?: number;
  /** Somebody deletes, edits and replaces its children just before it writes. */
  readonly isMeddledWith?: boolean;
}

/** What a user finds in the end, without what differs from run to run. */
export interface Outcome {
  readonly subjects: readonly Essence[];
  readonly children: readonly Essence[];
  readonly events: readonly string[];
}

interface Essence {
  readonly name: string;
  readonly said: unknown;
}

/** So many daemons are enough for anybody's work, one write each. */
const MOST_LIVES = 60;

/** The daemon sends nothing for so long: it has nothing more to do, or waits. */
const STEP_MS = 100;

/** Plays a scenario, and stops when all is done; rejects if that does not come to be. */
export async function play(scenario: Scenario, trouble: Trouble = {}): Promise<Outcome> {
  const { trade } = scenario;
  const world = new Simulation();
  world.startCluster();
  if (trade.resource !== NODES) await world.installCrd(trade.resource, ...trade.children);
  const config = { controllers: [trade.controller] };
  if (scenario.before) {
    const stop = world.startDaemon(config);
    await scenario.before(world);
    await world.pass(1000);
    await world.settle();
    await stop();
  }
  const created = new Map<string, number>();
  const meddler = trouble.isMeddledWith ? new Meddler(world, trade.children) : undefined;
  const around = troubled(world, { ...trouble, meddler }, (path, body) => {
    const { metadata } = JSON.parse(body) as KubernetesObject;
    const owner = path.includes('/pods') ? controllerOf({ metadata }) : undefined;
    if (owner?.kind === ATS.kind) created.set(owner.uid, (created.get(owner.uid) ?? 0) + 1);
  });
  let life = new Life(trouble.death);
  const begin = () =>
    world.startDaemonBehind((handler) => life.around(around(handler)), {
      ...config,
      gracefulShutdownTimeoutMs: 0,
    });
  let stop = begin();
  await world.pass(STEP_MS);
  await scenario.change(world);
  for (let lives = 1, requests = -1; ; requests = life.requests) {
    await world.pass(STEP_MS);
    if (life.isOver) {
      assert.ok(++lives <= MOST_LIVES, `${scenario.name}: not done by ${MOST_LIVES} daemons`);
      await stop();
      life = new Life(trouble.death);
      stop = begin();
    } else if (requests === life.requests && (await scenario.isDone(world))) break;
    const waited = world.elapsedMs() / 1000;
    assert.ok(waited < 900, `${scenario.name}: not done\n${world.errors().join('\n')}`);
  }
  await meddler?.leave();
  // Events whose sending was disturbed take their time.
  await world.pass(30_000);
  await world.settle();
  const outcome = await outcomeOf(world, scenario);
  await world.end();
  for (const [uid, pods] of created) assert.equal(pods, 1, `At ${uid} has had ${pods} Pods`);
  return outcome;
}

/** @param created is told what the daemon has created */
function troubled(
  world: Simulation,
  { losesAnswers = false, lagMs = 0, meddler }: Trouble & { readonly meddler: Meddler | undefined },
  created: (path: string, body: string) => void,
): (handler: HttpHandler) => HttpHandler {
  let carriedOut = 0;
  const lag = lagMs > 0 ? late(world, lagMs) : (handler: HttpHandler) => handler;
  return (handler) =>
    lag(async (request) => {
      const isWrite = request.method !== 'GET';
      if (isWrite) await meddler?.meddle();
      const response = await handler(request);
      if (response.status === 201) created(request.path, String(request.body));
      if (isWrite && losesAnswers && response.status < 300 && ++carriedOut % 2 === 1) {
        throw new ConnectionReset();
      }
      return response;
    });
}

/** What a user finds; rejects if there are orphans. */
async function outcomeOf(world: Simulation, { trade }: Scenario): Promise<Outcome> {
  const { resource, children, component } = trade;
  const list = (kind: Resource) =>
    world.client.list(kind, kind.namespaced ? { namespace: world.namespace } : {});
  const subjects = (await list(resource)).items;
  const owned = (await Promise.all(children.map(list))).flatMap(({ items }) => items);
  const sets = (await list(REPLICA_SETS)).items;
  const living = new Set([...subjects, ...owned, ...sets].map(({ metadata }) => metadata.uid));
  for (const { kind, metadata } of [...owned, ...sets]) {
    for (const owner of metadata.ownerReferences ?? []) {
      assert.ok(living.has(owner.uid), `${kind} ${metadata.name} is an orphan of ${owner.name}`);
    }
  }
  const events = await world.events(component);
  return {
    subjects: subjects.map((subject) => essence(subject, 'with status')),
    children: owned.map((child) => essence(child)).toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    events: events
      // Of an act during which a daemon died nobody tells: see decision 0004.
      .filter((event) => !event.startsWith('Success'))
      // How late follows from what went wrong before.
      .map((event) => event.replace(/, \d+s late$/, '')),
  };
}

/** What an object says, but when it came to say so, and who is who. */
function essence(object: KubernetesObject, withStatus?: 'with status'): Essence {
  const { kind, metadata, spec, status } = object as KubernetesObject & Record<string, unknown>;
  const { name, labels, finalizers, ownerReferences } = metadata;
  const said = { labels, finalizers, ownerReferences, spec, ...(withStatus && { status }) };
  return {
    name: `${kind} ${name}`,
    said: JSON.parse(JSON.stringify(said), (key, value: unknown) =>
      VOLATILE.has(key) ? typeof value : withoutTimes(value),
    ) as unknown,
  };
}

const VOLATILE = new Set(['uid', 'podUID', 'lastTransitionTime', 'schedule', 'nodeInfo']);

function withoutTimes(value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\d{4}-[-\dT:]+(\.\d+)?Z/g, 'TIME') : value;
}
