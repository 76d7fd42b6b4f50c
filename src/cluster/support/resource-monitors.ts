import { CUSTOM_RESOURCE_DEFINITIONS } from '../../api/builtin.ts';
import type { CustomResourceDefinition } from '../../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { EventHandler, HandlerRegistration } from '../../cache/event-handler.ts';
import { Informer } from '../../cache/informer.ts';
import { listerWatcher } from '../../cache/lister-watcher.ts';
import { discover } from '../../client/discovery.ts';
import type { Runnable } from '../../util/runnable.ts';
import { untilAborted } from '../../util/abort.ts';
import { messageOf } from '../../util/values.ts';
import type { InformerSet } from '../../cache/informer-set.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { ControllerDeps } from '../../manager/controller-options.ts';

/** Events expire and own nothing. */
const IGNORED: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io']);

/** Retry interval of discovery, in milliseconds. */
const DISCOVERY_RETRY_MS = 1000;

interface Monitor {
  readonly resource: Resource;
  readonly registrations: readonly HandlerRegistration[];
  readonly stop: AbortController;
  readonly ended: Promise<void>;
  /** Resource to monitor after this monitor has ended: another version, or a new CRD of the same name. */
  next?: Resource;
  /** Whether the CRD was deleted, and all objects with it. */
  isDeleted: boolean;
}

/**
 * Informers for all resources that the server can list, watch and delete: those that other cluster
 * controllers use, and metadata-only informers for the others. Built-in resources are discovered at
 * startup; informers for custom resources follow the served versions of their CRDs.
 */
export class ResourceMonitors implements Runnable {
  readonly name = 'resource-monitors';
  readonly #deps: ClusterDeps;
  readonly #handlers: ((resource: Resource) => EventHandler<KubernetesObject>)[] = [];
  readonly #monitors = new Map<string, Monitor>();
  #onFailure: (cause: unknown) => void = () => undefined;

  constructor(deps: ClusterDeps) {
    this.#deps = deps;
  }

  /** Adds a handler for the objects of each resource, before `run`. */
  addHandler(handlerFor: (resource: Resource) => EventHandler<KubernetesObject>): void {
    this.#handlers.push(handlerFor);
  }

  /** Whether every monitored resource has been listed. */
  get hasSynced(): boolean {
    const monitors = [...this.#monitors.values()];
    return (
      monitors.length > 0 &&
      monitors.every(({ registrations }) => registrations.every(({ hasSynced }) => hasSynced))
    );
  }

  /** Returns the resource of a kind in this version, served or not, or undefined if the kind is not monitored. */
  resolve(apiVersion: string, kind: string): Resource | undefined {
    const version = apiVersion.slice(apiVersion.indexOf('/') + 1);
    for (const { resource } of this.#monitors.values()) {
      const inVersion = { ...resource, version };
      if (resource.kind === kind && apiVersionOf(inVersion) === apiVersion) return inVersion;
    }
    return undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    const failure = new AbortController();
    const runSignal = AbortSignal.any([signal, failure.signal]);
    this.#onFailure = (cause) => failure.abort(cause);
    const crds = this.#deps.informers.for(CUSTOM_RESOURCE_DEFINITIONS);
    const registration = crds.addHandler({
      onAdd: (crd) => this.#follow(crd),
      onUpdate: (_, crd) => this.#follow(crd),
      onDelete: ({ metadata }) => {
        const monitor = this.#monitors.get(metadata.name);
        if (!monitor) return;
        monitor.isDeleted = true;
        delete monitor.next;
        monitor.stop.abort();
      },
    });
    await this.#discover(runSignal);
    await untilAborted(runSignal);
    registration.remove();
    const monitors = [...this.#monitors.values()];
    for (const monitor of monitors) {
      delete monitor.next;
      monitor.stop.abort();
    }
    await Promise.all(monitors.map(({ ended }) => ended));
    if (failure.signal.aborted) throw failure.signal.reason;
  }

  /** Discovers the built-in resources. Retries until the server is available. */
  async #discover(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const { resources } = await discover(this.#deps.client, signal);
        for (const resource of resources) {
          const isMonitored = this.#monitors.has(groupResourceOf(resource));
          if (
            !isMonitored &&
            ['list', 'watch', 'delete'].every((verb) => resource.verbs.includes(verb))
          ) {
            this.#monitor(resource);
          }
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.#deps.log.v(1).info('Unable to discover resources; retrying', {
          err: messageOf(error),
        });
        await this.#deps.clock.sleep(DISCOVERY_RETRY_MS, signal);
      }
    }
  }

  #follow(crd: DeepReadonly<CustomResourceDefinition>): void {
    const served = crd.spec.versions.filter((version) => version.served);
    const version = served.find(({ storage }) => storage) ?? served[0];
    const established = crd.status?.conditions?.some(
      ({ type, status }) => type === 'Established' && status === 'True',
    );
    if (!version || !established) return;
    const monitored = this.#monitors.get(crd.metadata.name);
    const isServed = served.some(({ name }) => name === monitored?.resource.version);
    if (isServed && !monitored?.stop.signal.aborted) return;
    this.#monitor({
      group: crd.spec.group,
      version: version.name,
      plural: crd.spec.names.plural,
      kind: crd.spec.names.kind,
      namespaced: crd.spec.scope === 'Namespaced',
    });
  }

  #monitor(resource: Resource): void {
    const id = groupResourceOf(resource);
    if (IGNORED.has(id)) return;
    const current = this.#monitors.get(id);
    if (current) {
      current.next = resource;
      current.stop.abort();
      return;
    }
    const { client, clock, log, random, informers } = this.#deps;
    const shared = informers.informers.find(({ name }) => name === id);
    const source = listerWatcher(client, resource, {}, { metadataOnly: true });
    const informer =
      shared ??
      new Informer(resource, source, {
        name: `${id} as metadata`,
        clock,
        log,
        ...(random && { random }),
      });
    const handlers = this.#handlers.map((handlerFor) => handlerFor(resource));
    const registrations = handlers.map((handler) => informer.addHandler(handler));
    const stop = new AbortController();
    const run = async () => {
      try {
        await (shared ? untilAborted(stop.signal) : informer.run(stop.signal));
      } catch (cause) {
        this.#onFailure(cause);
      }
      this.#monitors.delete(id);
      const { next, isDeleted } = monitor;
      if (isDeleted || next) {
        // If the CRD was not deleted, the objects may still exist in another version.
        for (const object of informer.lister.list()) {
          for (const handler of handlers) handler.onDelete?.(object, isDeleted);
        }
      }
      if (next) this.#monitor(next);
    };
    for (const { synced } of registrations) synced.catch(() => undefined);
    const monitor: Monitor = { resource, registrations, stop, isDeleted: false, ended: run() };
    this.#monitors.set(id, monitor);
  }
}

/** Dependencies of cluster controllers. */
export interface ClusterDeps extends ControllerDeps {
  readonly informers: InformerSet;
  /** Returns the recorder of a component. */
  readonly events: { recorder(component: string): EventRecorder };
}
