import { readinessOf } from '../api/kstatus.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import type { Readiness } from '../api/readiness.ts';
import type { OwnedDraft } from './owned-object.ts';

/** An object of a graph of owned objects. */
export interface OwnedNode {
  /** The desired state of the object. */
  readonly object: OwnedDraft;
  /**
   * Objects of the graph that must be ready before this one is written.
   * @default none
   */
  readonly dependsOn?: readonly OwnedDraft[] | undefined;
  /**
   * Returns the readiness of the object, as it is now.
   * @default readinessOf: the rules of kstatus
   */
  readiness?(object: DeepReadonly<KubernetesObject>): Readiness;
}

/** A node with the progress of its object. */
interface Progress {
  readonly node: OwnedNode;
  readonly dependsOn: readonly Progress[];
  /** Undefined until the object is written in this sync, and while an object of its name is being deleted. */
  readiness: Readiness | undefined;
}

/** The objects of one owner in the order of their dependencies, with their progress in one sync. */
export class OwnedGraph {
  /** Each after those on which it depends. */
  readonly #order: readonly Progress[];
  readonly #byDraft = new Map<OwnedDraft, Progress>();
  /** @throws {TypeError} if an object is there twice, depends on one that is not in the graph, or on itself through others */
  constructor(nodes: readonly OwnedNode[]) {
    const byId = new Map<string, OwnedNode>();
    for (const node of nodes) {
      const id = idOf(node.object);
      if (byId.has(id)) throw new TypeError(`${nameOf(node.object)} is in the graph twice`);
      byId.set(id, node);
    }
    const sorted = new Map<OwnedNode, Progress>();
    const visit = (node: OwnedNode, path: readonly OwnedNode[]): Progress => {
      const known = sorted.get(node);
      if (known) return known;
      if (path.includes(node)) {
        const names = [...path.slice(path.indexOf(node)), node].map(({ object }) => nameOf(object));
        throw new TypeError(`Objects of the graph depend on each other: ${names.join(' → ')}`);
      }
      const dependsOn = (node.dependsOn ?? []).map((draft) => {
        const dependency = byId.get(idOf(draft));
        if (dependency) return visit(dependency, [...path, node]);
        throw new TypeError(
          `${nameOf(node.object)} depends on ${nameOf(draft)}, which is not in the graph`,
        );
      });
      const progress = { node, dependsOn, readiness: undefined };
      sorted.set(node, progress);
      return progress;
    };
    for (const node of nodes) this.#byDraft.set(node.object, visit(node, []));
    this.#order = [...sorted.values()];
  }

  /** The desired objects, each after those on which it depends. */
  get drafts(): readonly OwnedDraft[] {
    return this.#order.map(({ node }) => node.object);
  }

  /** Whether an object must not be written yet. */
  waits(draft: OwnedDraft): boolean {
    return this.#blockersOf(this.#byDraft.get(draft)).length > 0;
  }

  /** Whether any object must not be written yet. */
  get isIncomplete(): boolean {
    return this.#order.some((progress) => this.#blockersOf(progress).length > 0);
  }

  /**
   * Observes an object after it was written.
   *
   * @param nowMs milliseconds since the epoch; by default of the machine's clock
   */
  observe(draft: OwnedDraft, object: DeepReadonly<KubernetesObject>, nowMs?: number): void {
    const progress = this.#byDraft.get(draft);
    if (!progress) return;
    const { node } = progress;
    progress.readiness = node.readiness?.(object) ?? readinessOf(object, nowMs);
  }

  /** Returns the objects that depend on one directly. */
  dependentsOf(draft: OwnedDraft): readonly OwnedDraft[] {
    const progress = this.#byDraft.get(draft);
    return this.#order
      .filter(({ dependsOn }) => dependsOn.some((each) => each === progress))
      .map(({ node }) => node.object);
  }

  /** Returns the readiness of all objects: the message says what is not ready, and what waits for what. */
  get readiness(): Readiness {
    const pending = this.#order.filter(({ readiness }) => readiness?.kind !== 'ready');
    if (pending.length === 0) {
      const message = `${this.#order.length} objects are ready`;
      return { kind: 'ready', reason: 'ObjectsReady', message };
    }
    const message = pending.map((progress) => this.#describe(progress)).join('; ');
    const failed = pending.find(({ readiness }) => readiness?.kind === 'stalled')?.readiness;
    return failed
      ? { kind: 'stalled', reason: failed.reason, message }
      : { kind: 'reconciling', reason: 'ObjectsNotReady', message };
  }

  /**
   * Returns the readiness of the owner while the objects are deleted, each after those that depend on it.
   *
   * @param present those that are not gone, of which at least one is left
   */
  deletionOf(present: ReadonlySet<OwnedDraft>): Readiness {
    const left = this.drafts.filter((draft) => present.has(draft)).toReversed();
    const message = left.map((draft) => {
      const blockers = this.dependentsOf(draft).filter((dependent) => present.has(dependent));
      const names = blockers.map((blocker) => nameOf(blocker));
      return names.length > 0
        ? `${nameOf(draft)} waits for the deletion of ${names.join(' and ')}`
        : `${nameOf(draft)} is being deleted`;
    });
    return { kind: 'reconciling', reason: 'ObjectsTerminating', message: message.join('; ') };
  }

  #describe(progress: Progress): string {
    const name = nameOf(progress.node.object);
    const blockers = this.#blockersOf(progress).map(({ node }) => nameOf(node.object));
    if (blockers.length > 0) return `${name} waits for ${blockers.join(' and ')}`;
    return `${name}: ${progress.readiness?.message ?? 'waits for the deletion of an object of this name'}`;
  }

  #blockersOf(progress: Progress | undefined): readonly Progress[] {
    return progress?.dependsOn.filter(({ readiness }) => readiness?.kind !== 'ready') ?? [];
  }
}

function idOf({ apiVersion, kind, metadata: { namespace = '', name } }: OwnedDraft): string {
  return `${apiVersion} ${kind} ${namespace}/${name}`;
}

function nameOf({ kind, metadata: { name } }: OwnedDraft): string {
  return `${kind} "${name}"`;
}
