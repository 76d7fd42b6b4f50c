import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../util/clock.ts';
import type { Logger } from '../util/logger.ts';
import { messageOf } from '../util/values.ts';
import type { ClusterConfig } from './kube-config/cluster-config.ts';
import type { RequestTarget } from './exchanger.ts';

/** A target with connections of its own. */
export interface OpenTarget extends RequestTarget {
  /**
   * Ends watches at once, other requests when they are answered, and refuses new ones; resolves when
   * all connections are closed.
   */
  retire(): Promise<void>;
  /** Ends all connections; what is in flight fails. */
  close(): Promise<void>;
}

export interface TargetReloaderDeps {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly log: Logger;
  readonly open: (config: ClusterConfig) => OpenTarget;
  /** Reads the configuration again. Absent: it does not change. */
  readonly reload: (() => Promise<ClusterConfig>) | undefined;
}

/** Pause between two readings, in milliseconds. */
const RELOAD_PAUSE_MS = 2000;

/**
 * The target that a configuration describes, replaced as a whole when the configuration has changed:
 * server, authority and credentials of two versions are never used together. The configuration is
 * read on demand, once at a time and at most every two seconds. If it cannot be read, the target stays.
 */
export class TargetReloader {
  readonly #deps: TargetReloaderDeps;
  #config: ClusterConfig;
  #target: OpenTarget;
  readonly #retiring = new Set<OpenTarget>();
  #reading: Promise<void> | undefined;
  #readAgainAtMs = Number.NEGATIVE_INFINITY;
  #failure: string | undefined;
  #isClosed = false;

  constructor(deps: TargetReloaderDeps, config: ClusterConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#target = deps.open(config);
  }

  get target(): OpenTarget {
    return this.#target;
  }

  /** Returns the target to use from now on, after a request to the present one failed. */
  async renewed(): Promise<OpenTarget> {
    const { reload, clock } = this.#deps;
    if (reload && !this.#isClosed && clock.monotonic() >= this.#readAgainAtMs) {
      this.#reading ??= this.#read(reload).finally(() => {
        this.#readAgainAtMs = clock.monotonic() + RELOAD_PAUSE_MS;
        this.#reading = undefined;
      });
    }
    await this.#reading;
    return this.#target;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([this.#target, ...this.#retiring].map((target) => target.close()));
  }

  async #read(reload: () => Promise<ClusterConfig>): Promise<void> {
    const { log, open } = this.#deps;
    const former = this.#target;
    try {
      const config = await reload();
      this.#failure = undefined;
      if (this.#isClosed || isSameTarget(config, this.#config)) return;
      this.#target = open(config);
      this.#config = config;
    } catch (error) {
      const failure = messageOf(error);
      if (failure !== this.#failure) {
        log.error(error, 'Failed to read the kubeconfig again; using the previous configuration');
      }
      this.#failure = failure;
      return;
    }
    const { source, server } = this.#config;
    log.info('Kubeconfig changed; reconnecting', { source, server });
    this.#retiring.add(former);
    const forget = () => this.#retiring.delete(former);
    former.retire().then(forget, forget);
  }
}

/** The namespace is not part of a target. */
function isSameTarget(one: ClusterConfig, other: ClusterConfig): boolean {
  const namespace = '';
  return isDeepStrictEqual(
    { ...one, namespace, namespaceIsAssumed: false },
    { ...other, namespace, namespaceIsAssumed: false },
  );
}
