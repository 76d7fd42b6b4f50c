import { CUSTOM_RESOURCE_DEFINITIONS } from '../api/builtin.ts';
import type { CustomResourceDefinition } from '../api/builtin.ts';
import type { DeepReadonly, KubernetesObject } from '../api/object.ts';
import { apiVersionOf, groupResourceOf } from '../api/resource.ts';
import type { Resource } from '../api/resource.ts';
import type { EventHandler, HandlerRegistration } from '../cache/event-handler.ts';
import { Informer } from '../cache/informer.ts';
import { listerWatcher } from '../cache/lister-watcher.ts';
import { discover } from '../client/discovery.ts';
import type { Runnable } from '../util/runnable.ts';
import { untilAborted } from '../util/abort.ts';
import { messageOf } from '../util/values.ts';
import type { InformerSet } from '../cache/informer-set.ts';
import type { EventRecorder } from '../record/event-recorder.ts';
import type { ControllerDeps } from '../manager/controller-options.ts';

/** Events expire and own nothing. */
const IGNORED: ReadonlySet<string> = new Set(['events', 'events.events.k8s.io']);

/** Retry interval of discovery, in milliseconds. */
const DISCOVERY_RETRY_MS = 1000;

interface Monitor {
  readonly resource: Resource;
  readonly registrations: readonly HandlerRegistration[];
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/**
 * Metadata-only informers for all resources that the server can list, watch and delete. Built-in
 * resources are discovered at startup; informers for custom resources follow their CRDs.
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

  /** Returns the resource of a kind, or undefined if it is not monitored. */
  resolve(apiVersion: string, kind: string): Resource | undefined {
    for (const { resource } of this.#monitors.values()) {
      if (resource.kind === kind && apiVersionOf(resource) === apiVersion) return resource;
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
      onDelete: (crd) => this.#monitors.get(crd.metadata.name)?.stop.abort(),
    });
    await this.#discover(runSignal);
    await untilAborted(runSignal);
    registration.remove();
    const monitors = [...this.#monitors.values()];
    for (const { stop } of monitors) stop.abort();
    await Promise.all(monitors.map(({ ended }) => ended));
    if (failure.signal.aborted) throw failure.signal.reason;
  }

  /** Discovers the built-in resources. Retries until the server is available. */
  async #discover(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const { resources } = await discover(this.#deps.client, signal);
        for (const resource of resources) {
          if (['list', 'watch', 'delete'].every((verb) => resource.verbs.includes(verb))) {
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
    if (IGNORED.has(id) || this.#monitors.has(id)) return;
    const { client, clock, log } = this.#deps;
    const source = listerWatcher(client, resource, {}, { metadataOnly: true });
    const informer = new Informer(resource, source, { name: `${id} as metadata`, clock, log });
    const handlers = this.#handlers.map((handlerFor) => handlerFor(resource));
    const registrations = handlers.map((handler) => informer.addHandler(handler));
    const stop = new AbortController();
    const run = async () => {
      try {
        await informer.run(stop.signal);
      } catch (cause) {
        this.#onFailure(cause);
      }
      this.#monitors.delete(id);
      // The CRD was deleted, and all objects of its kind with it.
      for (const object of informer.lister.list()) {
        for (const handler of handlers) handler.onDelete?.(object, true);
      }
    };
    for (const { synced } of registrations) synced.catch(() => undefined);
    this.#monitors.set(id, { resource, registrations, stop, ended: run() });
  }
}

/** Dependencies of cluster controllers. */
export interface ClusterDeps extends ControllerDeps {
  readonly informers: InformerSet;
  /** Returns the recorder of a component. */
  readonly events: { recorder(component: string): EventRecorder };
}
