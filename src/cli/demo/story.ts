import { DEPLOYMENTS } from '../../api/builtin.ts';
import { isApiError } from '../../api/api-error.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import { Act, NotSo } from './act.ts';
import type { ActDeps } from './act.ts';
import type { Scene } from './scene.ts';
import { holds } from './view.ts';

/** Dependencies of `Story`. */
export interface StoryDeps extends ActDeps {
  readonly client: Pick<Client, 'list'>;
}

/** A kind that is installed is served within moments; for so long it is asked for, in steps of 50 ms. */
const SERVED_ATTEMPTS = 100;

/** The scenes, one after another. The first claim that is not so ends the story. */
export class Story {
  readonly #deps: StoryDeps;
  readonly #scenes: readonly Scene[];

  constructor(deps: StoryDeps, scenes: readonly Scene[]) {
    this.#deps = deps;
    this.#scenes = scenes;
  }

  /** Before the daemon comes: without their CRDs its controllers would wait. */
  install(signal: AbortSignal): Promise<boolean> {
    return untilNotSo(async () => {
      const kinds = this.#scenes.flatMap((scene) => scene.kinds);
      if (kinds.length === 0) return;
      const act = new Act(this.#deps, signal);
      act.heading(kinds.length === 1 ? 'Install a CRD' : 'Install the CRDs');
      const [first, ...others] = kinds.map((kind) => `crds/${groupResourceOf(kind)}.yaml`);
      await act.kubectl.apply(first === undefined || others.length > 0 ? 'crds' : first);
      const missing = await this.#notServed(kinds, signal);
      const names = kinds.map(({ kind }) => `${kind}s`).join(', ');
      act.claim(`The API server serves ${names}`, missing && `${missing} is not served`);
    });
  }

  play(signal: AbortSignal): Promise<boolean> {
    return untilNotSo(async () => {
      for (const scene of this.#scenes) await scene.play(new Act(this.#deps, signal));
    });
  }

  /** Something for the user to play with. */
  leave(signal: AbortSignal): Promise<boolean> {
    return untilNotSo(async () => {
      const act = new Act(this.#deps, signal);
      act.heading('Apply the examples again');
      const objects = await act.kubectl.apply(...this.#scenes.map(({ sample }) => sample));
      await act.reached('All objects are ready', (view) => {
        for (const { resource, name } of objects) {
          const object: KubernetesObject | undefined = view(resource).get(name);
          const type = resource.kind === DEPLOYMENTS.kind ? 'Available' : 'Ready';
          if (!object || !holds(object, type)) return `${name} is not ready`;
        }
        return undefined;
      });
    });
  }

  /** Which kind the server does not know even after a while. */
  async #notServed(kinds: readonly Resource[], signal: AbortSignal): Promise<string | undefined> {
    const { client, clock } = this.#deps;
    let attempts = 0;
    for (const kind of kinds) {
      while (!(await isServed(client, kind, signal))) {
        if (++attempts >= SERVED_ATTEMPTS) return kind.kind;
        await clock.sleep(50, signal);
        signal.throwIfAborted();
      }
    }
    return undefined;
  }
}

async function isServed(
  client: Pick<Client, 'list'>,
  kind: Resource,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.list(kind, { limit: 1, signal });
    return true;
  } catch (error) {
    if (isApiError(error, 'notFound')) return false;
    throw error;
  }
}

/** False if something that was claimed is not so; that has been told. */
async function untilNotSo(play: () => Promise<void>): Promise<boolean> {
  try {
    await play();
    return true;
  } catch (error) {
    if (error instanceof NotSo) return false;
    throw error;
  }
}
