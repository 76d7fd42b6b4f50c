import assert from 'node:assert/strict';
import { EVENTS, NODES, REPLICA_SETS } from '../../src/api/builtin.ts';
import { ATS } from '../../src/api/generated/at.ts';
import type { KubernetesObject } from '../../src/api/object.ts';
import { controllerOf } from '../../src/api/metadata.ts';
import type { Resource } from '../../src/api/resource.ts';
import { ConnectionReset } from '../../src/apiserver/http/faults.ts';
import type { HttpHandler } from '../../src/util/http.ts';
import { CompetingClient, CrashingProcess, delayWatches } from './disruptions.ts';
import type { CrashPoint } from './disruptions.ts';
import type { Scenario } from './scenarios.ts';
import { Simulation } from './simulation.ts';

/** Disruption of a controller during a scenario. */
export interface Disruption {
  /** Every process crashes there, and the next one starts at once. */
  readonly crash?: CrashPoint;
  /** Every other response to a write is lost. */
  readonly losesResponses?: boolean;
  /** Delay of watch events, in milliseconds. */
  readonly watchDelayMs?: number;
  /** Another client deletes, edits and replaces owned objects just before each write. */
  readonly hasCompetingClient?: boolean;
}

/** The final state, without values that differ between runs; events with their count. */
export interface Outcome {
  readonly subjects: readonly StableObject[];
  readonly children: readonly StableObject[];
  readonly events: readonly string[];
}

interface StableObject {
  readonly name: string;
  readonly content: unknown;
}

/** Maximum number of processes, each with at most one write. */
const MAX_PROCESSES = 60;

/** A process without requests for this time, in milliseconds, is idle. */
const STEP_MS = 100;

/** Runs a scenario until its change is done, and returns the final state. Rejects if it is not done in time. */
export async function runScenario(
  scenario: Scenario,
  disruption: Disruption = {},
): Promise<Outcome> {
  const { controller } = scenario;
  const simulation = new Simulation();
  simulation.startCluster();
  if (controller.resource !== NODES)
    await simulation.installCrd(controller.resource, ...controller.children);
  const config = { controllers: [controller.name] };
  if (scenario.before) {
    const stop = simulation.startDaemon(config);
    await scenario.before(simulation);
    await simulation.pass(1000);
    await simulation.settle();
    await stop();
  }
  const created = new Map<string, number>();
  const competing = disruption.hasCompetingClient
    ? new CompetingClient(simulation, controller.children)
    : undefined;
  const around = disrupted(simulation, { ...disruption, competing }, (path, body) => {
    const { metadata } = JSON.parse(body) as KubernetesObject;
    const owner = path.includes('/pods') ? controllerOf({ metadata }) : undefined;
    if (owner?.kind === ATS.kind) created.set(owner.uid, (created.get(owner.uid) ?? 0) + 1);
  });
  let daemon = new CrashingProcess(disruption.crash);
  const start = () =>
    simulation.startDaemonBehind((handler) => daemon.around(around(handler)), {
      ...config,
      gracefulShutdownTimeoutMs: 0,
    });
  let stop = start();
  await simulation.pass(STEP_MS);
  await scenario.change(simulation);
  for (let processes = 1, requests = -1; ; requests = daemon.requests) {
    await simulation.pass(STEP_MS);
    if (daemon.hasCrashed) {
      assert.ok(
        ++processes <= MAX_PROCESSES,
        `${scenario.name}: not done after ${MAX_PROCESSES} processes`,
      );
      await stop();
      daemon = new CrashingProcess(disruption.crash);
      stop = start();
    } else if (requests === daemon.requests && (await scenario.isDone(simulation))) break;
    const waited = simulation.elapsedMs() / 1000;
    assert.ok(waited < 900, `${scenario.name}: not done\n${simulation.errors().join('\n')}`);
  }
  await competing?.end();
  // Disrupted events are retried.
  await simulation.pass(30_000);
  await simulation.settle();
  const outcome = await outcomeOf(simulation, scenario);
  await simulation.end();
  for (const [uid, pods] of created) assert.equal(pods, 1, `At ${uid} had ${pods} Pods`);
  return outcome;
}

/** @param created receives the created objects */
function disrupted(
  simulation: Simulation,
  {
    losesResponses = false,
    watchDelayMs = 0,
    competing,
  }: Disruption & { readonly competing: CompetingClient | undefined },
  created: (path: string, body: string) => void,
): (handler: HttpHandler) => HttpHandler {
  let writes = 0;
  const delay =
    watchDelayMs > 0 ? delayWatches(simulation, watchDelayMs) : (handler: HttpHandler) => handler;
  return (handler) =>
    delay(async (request) => {
      const isWrite = request.method !== 'GET';
      if (isWrite) await competing?.change();
      const response = await handler(request);
      if (response.status === 201) created(request.path, String(request.body));
      if (isWrite && losesResponses && response.status < 300 && ++writes % 2 === 1) {
        throw new ConnectionReset();
      }
      return response;
    });
}

/** Returns the final state. Rejects if there are orphans. */
async function outcomeOf(simulation: Simulation, { controller }: Scenario): Promise<Outcome> {
  const { resource, children, component } = controller;
  const list = (kind: Resource) =>
    simulation.client.list(kind, kind.namespaced ? { namespace: simulation.namespace } : {});
  const subjects = (await list(resource)).items;
  const owned = (await Promise.all(children.map(list))).flatMap(({ items }) => items);
  const sets = (await list(REPLICA_SETS)).items;
  const living = new Set([...subjects, ...owned, ...sets].map(({ metadata }) => metadata.uid));
  for (const { kind, metadata } of [...owned, ...sets]) {
    for (const owner of metadata.ownerReferences ?? []) {
      assert.ok(living.has(owner.uid), `${kind} ${metadata.name} is an orphan of ${owner.name}`);
    }
  }
  const events = (await simulation.client.list(EVENTS, { namespace: simulation.namespace })).items
    .filter(({ source }) => source?.component === component)
    .map(({ reason, message, count = 1 }) => `${reason} ${message}${count > 1 ? ` ×${count}` : ''}`)
    .toSorted();
  return {
    subjects: subjects.map((subject) => stableObject(subject, 'with status')),
    children: owned
      .map((child) => stableObject(child))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    events: events
      // Events of actions that a crash interrupted are lost: see decision 0004.
      .filter((event) => !event.startsWith('Success'))
      // The delay depends on the disruption.
      .map((event) => event.replace(/, \d+s late(?=$| ×)/, '')),
  };
}

/** Returns an object without times and identities. */
function stableObject(object: KubernetesObject, withStatus?: 'with status'): StableObject {
  const { kind, metadata, spec, status } = object as KubernetesObject & Record<string, unknown>;
  const { name, labels, finalizers, ownerReferences } = metadata;
  const content = { labels, finalizers, ownerReferences, spec, ...(withStatus && { status }) };
  return {
    name: `${kind} ${name}`,
    content: JSON.parse(JSON.stringify(content), (key, value: unknown) =>
      VOLATILE.has(key) ? typeof value : withoutTimes(value),
    ) as unknown,
  };
}

const VOLATILE = new Set(['uid', 'podUID', 'lastTransitionTime', 'schedule', 'nodeInfo']);

function withoutTimes(value: unknown): unknown {
  return typeof value === 'string' ? value.replaceAll(/\d{4}-[-\dT:]+(\.\d+)?Z/g, 'TIME') : value;
}
