import { PODS } from '../../../api/builtin.ts';
import type { Pod } from '../../../api/builtin.ts';
import { COUNTS } from '../../../api/generated/count.ts';
import { COUNT_COMPONENT } from '../../../controllers/count/pods.ts';
import type { ScenarioContext, Scenario } from '../scenario.ts';
import { eventsOf, isShownReady, namesOf, ownedBy, recordings } from '../observer.ts';
import type { View } from '../observer.ts';

const NAME = 'test-count';

/** Scales a Count to three, five and two Pods, and deletes one Pod. */
export const countScenario: Scenario = {
  name: 'count',
  kinds: [COUNTS],
  sample: 'examples/01-count',
  run: async (context) => {
    const { kubectl } = context;
    context.heading('Create a Count with 3 Pods');
    await kubectl.apply('examples/01-count');
    let view = await checkEventually(context, 3);
    await kubectl.get(COUNTS, PODS);
    await kubectl.getEvents(`source=${COUNT_COMPONENT}`);
    context.check('The Count is the controller owner of each Pod', podsNotOwned(view));
    context.check(
      'count-controller records the event Synced: Count synced successfully',
      wrongEvent(view),
    );

    context.heading('Scale up to 5');
    let before = uidsOf(view);
    await kubectl.scale(COUNTS, NAME, 5);
    view = await checkEventually(context, 5);
    await kubectl.get(COUNTS, PODS);
    context.check('The first 3 Pods are unchanged', changedObjects(before, view));

    context.heading('Scale down to 2');
    before = uidsOf(view, [0, 1]);
    await kubectl.scale(COUNTS, NAME, 2);
    view = await checkEventually(context, 2);
    await kubectl.get(COUNTS, PODS);
    context.check(
      'The Pods with the highest ordinals are deleted; the first 2 are unchanged',
      changedObjects(before, view),
    );

    context.heading('Delete a Pod');
    before = uidsOf(view, [0]);
    const killed = view(PODS).get(podName(1))?.metadata.uid;
    await kubectl.delete(PODS, podName(1));
    view = await checkEventually(context, 2, killed);
    await kubectl.get(COUNTS, PODS);
    context.check(`A new Pod replaces ${podName(1)}`, sameUid(view, killed));
    context.check(`${podName(0)} is unchanged`, changedObjects(before, view));

    context.heading('Steady state');
    await context.checkSteadyState();

    context.heading('Delete the Count');
    await kubectl.delete(COUNTS, NAME);
    await context.checkEventually(
      'The Count is deleted, and the garbage collector deletes its Pods',
      (now) => {
        const left = [...now(COUNTS).values(), ...now(PODS).values()];
        return left.length === 0 ? undefined : `these still exist: ${namesOf(left)}`;
      },
    );
    await kubectl.get(COUNTS, PODS);
  },
};

/**
 * Waits until exactly `wanted` Pods are ready, and the status and a new `Synced` event report it.
 *
 * @param unwanted uid of a Pod that must be deleted
 */
function checkEventually(
  context: ScenarioContext,
  wanted: number,
  unwanted?: string,
): Promise<View> {
  const previous = syncedIn(context.observer.view);
  return context.checkEventually(
    `${wanted} Pods, ${podName(0)} to ${podName(wanted - 1)}, are ready; the Count is healthy`,
    (view) => {
      const pods = view(PODS);
      if ([...pods.values()].some(({ metadata }) => metadata.uid === unwanted)) {
        return 'the old Pod still exists';
      }
      return (
        missingPods(pods, wanted) ??
        missingStatus(view, wanted) ??
        (syncedIn(view) > previous ? undefined : 'there is no new event Synced')
      );
    },
  );
}

function missingPods(pods: ReadonlyMap<string, Pod>, wanted: number): string | undefined {
  for (let ordinal = 0; ordinal < wanted; ordinal++) {
    const pod = pods.get(podName(ordinal));
    if (!pod) return `${podName(ordinal)} does not exist`;
    if (!isShownReady(pod)) return `${podName(ordinal)} is not ready`;
  }
  return pods.size === wanted ? undefined : `there are ${pods.size} Pods, not ${wanted}`;
}

function missingStatus(view: View, wanted: number): string | undefined {
  const count = view(COUNTS).get(NAME);
  if (!count) return 'the Count does not exist';
  const { observedGeneration, healthy, replicas, readyReplicas } = count.status ?? {};
  if (observedGeneration !== count.metadata.generation) return 'the status is out of date';
  return healthy && replicas === wanted && readyReplicas === wanted
    ? undefined
    : `the status reports ${JSON.stringify({ healthy, replicas, readyReplicas })}`;
}

function podsNotOwned(view: View): string | undefined {
  const count = view(COUNTS).get(NAME);
  const owned = new Set(count ? ownedBy(view(PODS), count) : []);
  const others = [...view(PODS).values()].filter((pod) => !owned.has(pod));
  return others.length === 0 ? undefined : `not the owner of ${namesOf(others)}`;
}

function wrongEvent(view: View): string | undefined {
  const [event] = eventsOf(view, 'Synced');
  return event?.source?.component === COUNT_COMPONENT &&
    event.message === 'Count synced successfully'
    ? undefined
    : `the server has ${JSON.stringify(event?.message)} from ${JSON.stringify(event?.source)}`;
}

function syncedIn(view: View): number {
  return recordings(
    eventsOf(view, 'Synced').filter(({ source }) => source?.component === COUNT_COMPONENT),
  );
}

function podName(ordinal: number): string {
  return `${NAME}-${ordinal}`;
}

/** Returns uids by name: of all Pods, or of those with the given ordinals. */
function uidsOf(view: View, ordinals?: readonly number[]): ReadonlyMap<string, string> {
  const names = ordinals?.map(podName);
  return new Map(
    [...view(PODS)]
      .filter(([name]) => names?.includes(name) ?? true)
      .map(([name, { metadata }]) => [name, metadata.uid]),
  );
}

/** Returns which Pods were replaced or deleted. */
function changedObjects(before: ReadonlyMap<string, string>, view: View): string | undefined {
  const others = [...before].filter(([name, uid]) => view(PODS).get(name)?.metadata.uid !== uid);
  return others.length === 0 ? undefined : `changed: ${others.map(([name]) => name).join(', ')}`;
}

function sameUid(view: View, uid: string | undefined): string | undefined {
  const now = view(PODS).get(podName(1))?.metadata.uid;
  return now !== undefined && now !== uid ? undefined : `its uid is ${now}`;
}
