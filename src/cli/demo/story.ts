import { CUSTOM_RESOURCE_DEFINITIONS, EVENTS, PODS } from '../../api/builtin.ts';
import type { Event, Pod } from '../../api/builtin.ts';
import { COUNTS } from '../../api/generated/count.ts';
import { isControlledBy } from '../../api/owner-reference.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import { isApiError } from '../../api/api-error.ts';
import type { Kubectl } from './kubectl.ts';
import type { Narrator } from './narrator.ts';
import type { Scene } from './scene.ts';
import { missingPods, missingStatus, NAME, podName } from './missing.ts';

export interface StoryDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly kubectl: Kubectl;
  readonly narrator: Narrator;
  readonly scene: Scene;
  /** The folder that holds `crds` and `examples`. */
  readonly root: URL;
  /** Number of the server's last write. */
  readonly revision: () => number;
}

export const NAMESPACE = 'default';
const AT = { namespace: NAMESPACE, name: NAME };

/** For so long nothing may be written once there is nothing left to do, in milliseconds. */
const QUIET_MS = 500;

/**
 * The acts of the demo. Each does what a user would do, waits until the scene shows the outcome,
 * prints it, and then asks the server itself whether it is so. An act that fails ends the story:
 * those behind it build on it.
 */
export class Story {
  readonly #deps: StoryDeps;
  /** Of the Pods that nobody may have touched since, by name. */
  #uids: ReadonlyMap<string, string> = new Map();
  #synced = 0;

  constructor(deps: StoryDeps) {
    this.#deps = deps;
  }

  /** Before the daemon comes: without its CRD it would wait. */
  async install(signal: AbortSignal): Promise<boolean> {
    const { client, clock, kubectl, narrator, root } = this.#deps;
    const file = 'crds/counts.demo.mark8s.io.yaml';
    narrator.heading('A new kind of object');
    const created = await kubectl.create(CUSTOM_RESOURCE_DEFINITIONS, new URL(file, root));
    narrator.command(`kubectl apply -f ${file}`, [created]);
    let established = false;
    for (let attempt = 0; attempt < 100 && !established; attempt++) {
      if (attempt > 0) await clock.sleep(50, signal);
      const name = 'counts.demo.mark8s.io';
      const { status } = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, { signal });
      established = (status?.conditions ?? []).some(
        (condition) => condition.type === 'Established' && condition.status === 'True',
      );
    }
    return narrator.verdict(
      'The server serves Counts',
      established ? undefined : 'the CRD is not Established',
    );
  }

  /** Something for the user to play with. */
  async leave(signal: AbortSignal): Promise<void> {
    this.#deps.narrator.heading('Yours now');
    await this.#apply();
    await this.#reached(3, signal);
  }

  /** Everything the daemon is there for. */
  async play(signal: AbortSignal): Promise<boolean> {
    return (
      (await this.#create(signal)) &&
      (await this.#scaleUp(signal)) &&
      (await this.#scaleDown(signal)) &&
      (await this.#replace(signal)) &&
      (await this.#rest(signal)) &&
      (await this.#remove(signal))
    );
  }

  async #create(signal: AbortSignal): Promise<boolean> {
    const { client, kubectl, narrator } = this.#deps;
    narrator.heading('A Count of three');
    await this.#apply();
    if (!(await this.#reached(3, signal))) return false;
    await this.#show();
    narrator.command('kubectl get events', await kubectl.getEvents(NAMESPACE));

    const count = await client.get(COUNTS, AT, { signal });
    const pods = await this.#pods(signal);
    const strays = [...pods.values()].filter((pod) => !isControlledBy(pod, count));
    const synced = (await this.#events(signal)).find(({ reason }) => reason === 'Synced');
    this.#remember(pods);
    return (
      narrator.verdict(
        'Each Pod belongs to the Count, by uid',
        strays.length === 0 ? undefined : `not so ${namesOf(strays)}`,
      ) &&
      narrator.verdict(
        'Event Synced, from count-controller: Count synced successfully',
        synced?.source?.component === 'count-controller' &&
          synced.message === 'Count synced successfully'
          ? undefined
          : `the server has ${JSON.stringify(synced?.message)} from ${JSON.stringify(synced?.source)}`,
      )
    );
  }

  async #scaleUp(signal: AbortSignal): Promise<boolean> {
    const { kubectl, narrator } = this.#deps;
    narrator.heading('Two more');
    const scaled = await kubectl.scale(AT, 5);
    narrator.command(`kubectl scale --replicas=5 count/${NAME}`, [scaled]);
    if (!(await this.#reached(5, signal))) return false;
    await this.#show();
    const pods = await this.#pods(signal);
    const touched = this.#touched(pods);
    this.#remember(pods);
    return narrator.verdict('The first three were left alone', touched);
  }

  async #scaleDown(signal: AbortSignal): Promise<boolean> {
    const { kubectl, narrator } = this.#deps;
    narrator.heading('Three fewer');
    const scaled = await kubectl.scale(AT, 2);
    narrator.command(`kubectl scale --replicas=2 count/${NAME}`, [scaled]);
    this.#forget(2, 3, 4);
    if (!(await this.#reached(2, signal))) return false;
    await this.#show();
    return narrator.verdict(
      'The highest ordinals went; the first two were left alone',
      this.#touched(await this.#pods(signal)),
    );
  }

  async #replace(signal: AbortSignal): Promise<boolean> {
    const { kubectl, narrator } = this.#deps;
    const name = podName(1);
    narrator.heading('A Pod is killed');
    const before = this.#uids.get(name);
    narrator.command(`kubectl delete pod ${name}`, [
      await kubectl.delete(PODS, { namespace: NAMESPACE, name }),
    ]);
    this.#forget(1);
    if (!(await this.#reached(2, signal, before))) return false;
    await this.#show();
    const pods = await this.#pods(signal);
    const after = pods.get(name)?.metadata.uid;
    const touched = this.#touched(pods);
    this.#remember(pods);
    return (
      narrator.verdict(
        `Another Pod took the place of ${name}`,
        after !== undefined && after !== before ? undefined : `its uid is ${after}`,
      ) && narrator.verdict(`${podName(0)} was left alone`, touched)
    );
  }

  async #rest(signal: AbortSignal): Promise<boolean> {
    const { clock, narrator, revision } = this.#deps;
    narrator.heading('Nothing to do');
    const before = revision();
    await clock.sleep(QUIET_MS, signal);
    const writes = revision() - before;
    return narrator.verdict(
      `For ${QUIET_MS} ms nobody writes anything`,
      writes === 0 ? undefined : `there were ${writes} writes`,
    );
  }

  async #remove(signal: AbortSignal): Promise<boolean> {
    const { client, kubectl, narrator, scene } = this.#deps;
    narrator.heading('The end');
    narrator.command(`kubectl delete count ${NAME}`, [await kubectl.delete(COUNTS, AT)]);
    const left = await scene.until(() => {
      const names = [...scene.counts.keys(), ...scene.pods.keys()];
      return names.length === 0 ? undefined : `still there: ${names.join(', ')}`;
    }, signal);
    await this.#show();
    const { items } = await client.list(PODS, { namespace: NAMESPACE, signal });
    let count: string | undefined = 'the Count is still there';
    try {
      await client.get(COUNTS, AT, { signal });
    } catch (error) {
      if (!isApiError(error, 'notFound')) throw error;
      count = undefined;
    }
    return narrator.verdict(
      'The Count is gone, and the garbage collector took its Pods',
      left ?? count ?? (items.length === 0 ? undefined : `left over: ${namesOf(items)}`),
    );
  }

  /**
   * Waits until `wanted` Pods are there and ready, and the Count and a `Synced` event say so; then
   * asks the server.
   *
   * @param unwanted uid of a Pod that must have gone
   */
  async #reached(wanted: number, signal: AbortSignal, unwanted?: string): Promise<boolean> {
    const { client, narrator, scene } = this.#deps;
    const missing = await scene.until(() => {
      const pods = [...scene.pods.values()];
      if (pods.some(({ metadata }) => metadata.uid === unwanted))
        return 'the old Pod is still there';
      return (
        missingPods(scene.pods, wanted) ??
        missingStatus(scene.counts.get(NAME), wanted) ??
        (scene.recordings('Synced') > this.#synced ? undefined : 'no event Synced')
      );
    }, signal);
    this.#synced = scene.recordings('Synced');
    const reason =
      missing ??
      missingPods(await this.#pods(signal), wanted) ??
      missingStatus(await client.get(COUNTS, AT, { signal }), wanted);
    return narrator.verdict(
      `${wanted} Pods, ${podName(0)} to ${podName(wanted - 1)}, are ready; the Count is healthy`,
      reason,
    );
  }

  async #apply(): Promise<void> {
    const { kubectl, narrator, root } = this.#deps;
    const file = 'examples/01-count/count.yaml';
    const created = await kubectl.create(COUNTS, new URL(file, root), NAMESPACE);
    narrator.command(`kubectl apply -f ${file}`, [created]);
  }

  async #show(): Promise<void> {
    const { kubectl, narrator } = this.#deps;
    narrator.command('kubectl get count,pods', await kubectl.getCountAndPods(NAMESPACE));
  }

  async #pods(signal: AbortSignal): Promise<ReadonlyMap<string, Pod>> {
    const { items } = await this.#deps.client.list(PODS, { namespace: NAMESPACE, signal });
    return new Map(items.map((pod) => [pod.metadata.name, pod]));
  }

  async #events(signal: AbortSignal): Promise<readonly Event[]> {
    const { items } = await this.#deps.client.list(EVENTS, { namespace: NAMESPACE, signal });
    return items;
  }

  #remember(pods: ReadonlyMap<string, Pod>): void {
    this.#uids = new Map(Array.from(pods, ([name, { metadata }]) => [name, metadata.uid]));
  }

  #forget(...ordinals: readonly number[]): void {
    const gone = new Set(ordinals.map(podName));
    this.#uids = new Map([...this.#uids].filter(([name]) => !gone.has(name)));
  }

  /** Which of the remembered Pods are not the same any more. */
  #touched(pods: ReadonlyMap<string, Pod>): string | undefined {
    const touched = [...this.#uids].filter(([name, uid]) => pods.get(name)?.metadata.uid !== uid);
    return touched.length === 0 ? undefined : `not so ${touched.map(([name]) => name).join(', ')}`;
  }
}

function namesOf(pods: readonly Pod[]): string {
  return pods.map(({ metadata }) => metadata.name).join(', ');
}
