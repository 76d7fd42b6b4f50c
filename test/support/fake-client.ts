import type { KubernetesObject, ObjectList } from '../../src/api/object.ts';
import type { Resource } from '../../src/api/resource.ts';
import type { ListOptions, WatchOptions, WatchStream } from '../../src/client/client.ts';
import type { FakeClock } from '../../src/util/fake-clock.ts';
import { FakeSource } from './fake-source.ts';

/** A client for informers, with a fake source for each requested resource and namespace. */
export class FakeClient {
  readonly calls: { plural: string; options: ListOptions | WatchOptions }[] = [];
  readonly #sources = new Map<string, FakeSource>();
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  /** The source of a resource in `namespace`, or in all namespaces. */
  source({ plural }: Resource, namespace: string = ''): FakeSource {
    const id = `${namespace}/${plural}`;
    let source = this.#sources.get(id);
    if (!source) this.#sources.set(id, (source = new FakeSource(this.#clock)));
    return source;
  }

  async list<T extends KubernetesObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<ObjectList<T>> {
    this.calls.push({ plural: resource.plural, options });
    const source = this.source(resource, options.namespace);
    const list: ObjectList<KubernetesObject> = await source.list(options);
    return list as ObjectList<T>;
  }

  async watch<T extends KubernetesObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): Promise<WatchStream<T>> {
    this.calls.push({ plural: resource.plural, options });
    const source = this.source(resource, options.namespace);
    const stream: WatchStream<KubernetesObject> = await source.watch(options);
    return stream as WatchStream<T>;
  }
}
