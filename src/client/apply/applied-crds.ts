import { isApiError } from '../../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/builtin.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Client } from '../client.ts';
import { isRecord } from '../../util/values.ts';
import type { RestMapper } from './rest-mapper.ts';

/** Dependencies of `AppliedCrds`. */
export interface AppliedCrdsDeps {
  readonly client: Client;
  readonly finder: RestMapper;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** How long one definition is waited for, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** A definition that was applied, as far as its objects depend on it. */
interface Definition {
  /** `counts.demo.mark8s.io` */
  readonly name: string;
  readonly kind: string;
  /** `demo.mark8s.io/v1`, each that is served. */
  readonly apiVersions: readonly string[];
  /** Once waiting has begun: undefined when it is served, else why it is not. */
  served?: Promise<string | undefined>;
  deadlineMs?: number;
}

/** Pauses between two looks, in milliseconds: the first, the longest, and how they grow. */
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;
const GROWTH = 1.5;

/**
 * The CustomResourceDefinitions of a batch. Objects of their kinds have to wait: a server accepts a
 * definition first, establishes it then, and tells of it later still.
 */
export class AppliedCrds {
  readonly #deps: AppliedCrdsDeps;
  readonly #definitions: Definition[] = [];

  constructor(deps: AppliedCrdsDeps) {
    this.#deps = deps;
  }

  /** Takes note of a definition that the server has accepted. */
  add(object: KubernetesObject): void {
    const definition = definitionOf(object);
    if (definition) this.#definitions.push(definition);
  }

  /**
   * Resolves at once for kinds of no definition, and else when theirs is served; to the reason why
   * not if it cannot be, or is not in time.
   */
  async served(apiVersion: string, kind: string): Promise<string | undefined> {
    const definition = this.#of(apiVersion, kind);
    if (!definition) return undefined;
    definition.served ??= this.#wait(definition);
    return definition.served;
  }

  /**
   * Waits a little, for a server whose replicas do not all serve the kind yet.
   *
   * @returns false if there is nothing to wait for, or no time left
   */
  async retry(apiVersion: string, kind: string): Promise<boolean> {
    const { clock, signal } = this.#deps;
    const definition = this.#of(apiVersion, kind);
    if (!definition || clock.monotonic() >= (definition.deadlineMs ?? 0)) return false;
    await clock.sleep(MAX_PAUSE_MS, signal);
    signal?.throwIfAborted();
    return true;
  }

  #of(apiVersion: string, kind: string): Definition | undefined {
    return this.#definitions.find(
      (definition) => definition.kind === kind && definition.apiVersions.includes(apiVersion),
    );
  }

  async #wait(definition: Definition): Promise<string | undefined> {
    const { clock, timeoutMs, signal } = this.#deps;
    definition.deadlineMs = clock.monotonic() + timeoutMs;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(GROWTH * pauseMs, MAX_PAUSE_MS)) {
      const state = await this.#look(definition);
      if (state.kind === 'served') return undefined;
      if (state.kind === 'never') return state.why;
      if (clock.monotonic() >= definition.deadlineMs) {
        return `${definition.name} is not served after ${formatDuration(timeoutMs)}: ${state.why}`;
      }
      await clock.sleep(pauseMs, signal);
      signal?.throwIfAborted();
    }
  }

  async #look(definition: Definition): Promise<State> {
    const { client, finder, signal } = this.#deps;
    const { name, kind, apiVersions } = definition;
    let established = false;
    try {
      const crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, { signal });
      const refused = conditionOf(crd, 'NamesAccepted');
      if (refused?.status === 'False') {
        return {
          kind: 'never',
          why: `${name}: its names are not accepted: ${refused.message ?? ''}`,
        };
      }
      established = conditionOf(crd, 'Established')?.status === 'True';
    } catch (error) {
      if (isApiError(error, 'notFound'))
        return { kind: 'never', why: `${name} was deleted meanwhile` };
      // Who may write it and not read it learns from the list of what is served.
      if (!isApiError(error, 'forbidden')) throw error;
      established = true;
    }
    if (!established) return { kind: 'waiting', why: 'it is not Established' };
    if (!apiVersions.every((apiVersion) => finder.knows(apiVersion, kind))) {
      await finder.refresh(signal);
    }
    const missing = apiVersions.filter((apiVersion) => !finder.knows(apiVersion, kind));
    if (missing.length === 0) return { kind: 'served' };
    return { kind: 'waiting', why: `the server does not list ${missing.join(', ')} ${kind} yet` };
  }
}

type State =
  | { readonly kind: 'served' }
  | { readonly kind: 'waiting'; readonly why: string }
  | { readonly kind: 'never'; readonly why: string };

function conditionOf(crd: CustomResourceDefinition, type: string) {
  return crd.status?.conditions?.find((condition) => condition.type === type);
}

/** Undefined if `object` is none. What a type promises, a server of long ago may not keep. */
function definitionOf(
  object: Readonly<KubernetesObject> & { spec?: unknown },
): Definition | undefined {
  const { spec, metadata } = object;
  if (!isRecord(spec)) {
    return undefined;
  }
  const { group, names, versions } = spec;
  if (!isRecord(names) || !Array.isArray(versions)) return undefined;
  const { kind } = names;
  if (typeof group !== 'string' || typeof kind !== 'string') return undefined;
  const served = (versions as unknown[])
    .filter(isRecord)
    .filter((version) => version['served'] === true && typeof version['name'] === 'string');
  return {
    name: metadata.name,
    kind,
    apiVersions: served.map((version) => `${group}/${String(version['name'])}`),
  };
}
