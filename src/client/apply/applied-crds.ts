import { isApiError } from '../../api/api-error.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/builtin.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { Clock } from '../../util/clock.ts';
import { formatDuration } from '../../util/duration.ts';
import type { Client } from '../client.ts';
import { isRecord } from '../../util/values.ts';
import type { RestMapper } from '../rest-mapper.ts';

/** Dependencies of `AppliedCrds`. */
export interface AppliedCrdsDeps {
  readonly client: Client;
  readonly finder: RestMapper;
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>;
  /** Timeout for each definition, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** The part of an applied definition that its objects depend on. */
interface Definition {
  /** `counts.demo.mark8s.io` */
  readonly name: string;
  readonly kind: string;
  /** The served versions: `demo.mark8s.io/v1`. */
  readonly apiVersions: readonly string[];
  /** Set on the first wait. Resolves to undefined when the kind is served, otherwise to the reason. */
  served?: Promise<string | undefined>;
  deadlineMs?: number;
}

/** Backoff between two checks: first and maximum delay in milliseconds, and factor. */
const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 1000;
const FACTOR = 1.5;

/**
 * The CustomResourceDefinitions of a batch. Objects of their kinds must wait, because a server first stores a
 * definition, then establishes it, and then adds it to discovery.
 */
export class AppliedCrds {
  readonly #deps: AppliedCrdsDeps;
  readonly #definitions: Definition[] = [];

  constructor(deps: AppliedCrdsDeps) {
    this.#deps = deps;
  }

  /** Adds a definition that the server has accepted. */
  add(object: KubernetesObject): void {
    const definition = definitionOf(object);
    if (definition) this.#definitions.push(definition);
  }

  /**
   * Waits until a kind that the batch defines is served; resolves at once for other kinds. Resolves to undefined,
   * or to the reason if the kind is not served within the timeout.
   */
  async served(apiVersion: string, kind: string): Promise<string | undefined> {
    const definition = this.#of(apiVersion, kind);
    if (!definition) return undefined;
    definition.served ??= this.#wait(definition);
    return definition.served;
  }

  /**
   * Waits before a retry, for clusters in which not all API servers serve the kind yet.
   *
   * @returns false if the batch does not define the kind, or the timeout has expired
   */
  async retry(apiVersion: string, kind: string): Promise<boolean> {
    const { clock, signal } = this.#deps;
    const definition = this.#of(apiVersion, kind);
    if (!definition || clock.monotonic() >= (definition.deadlineMs ?? 0)) return false;
    await clock.sleep(MAX_DELAY_MS, signal);
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
    for (let delayMs = FIRST_DELAY_MS; ; delayMs = Math.min(FACTOR * delayMs, MAX_DELAY_MS)) {
      const state = await this.#check(definition);
      if (state.kind === 'served') return undefined;
      if (state.kind === 'never') return state.why;
      if (clock.monotonic() >= definition.deadlineMs) {
        return `${definition.name} is not served after ${formatDuration(timeoutMs)}: ${state.why}`;
      }
      await clock.sleep(delayMs, signal);
      signal?.throwIfAborted();
    }
  }

  async #check(definition: Definition): Promise<State> {
    const { client, finder, signal } = this.#deps;
    const { name, kind, apiVersions } = definition;
    let established = false;
    try {
      const crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, { name }, { signal });
      const namesAccepted = conditionOf(crd, 'NamesAccepted');
      if (namesAccepted?.status === 'False') {
        return {
          kind: 'never',
          why: `the names of ${name} are not accepted: ${namesAccepted.message ?? ''}`,
        };
      }
      established = conditionOf(crd, 'Established')?.status === 'True';
    } catch (error) {
      if (isApiError(error, 'notFound')) return { kind: 'never', why: `${name} was deleted` };
      // Without permission to read the definition, discovery shows whether the kind is served.
      if (!isApiError(error, 'forbidden')) throw error;
      established = true;
    }
    if (!established) return { kind: 'waiting', why: 'its condition Established is not True' };
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

/** Returns undefined if `object` is not a definition; its structure depends on the server and is checked. */
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
