import type { Pod } from '../../api/builtin.ts';
import type { PodPorts } from '../../api/kubelet.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { HttpRequest } from '../../util/http.ts';

/**
 * Returns the HTTP servers of a Pod: one at each port that a container declares, which describes the container and the
 * request.
 */
export function podPorts({ metadata, spec }: DeepReadonly<Pod>): PodPorts {
  const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  return (number) => {
    for (const container of all) {
      const port = container.ports?.find(({ containerPort }) => containerPort === number);
      if (!port) continue;
      const { name, image, command, args } = container;
      const { namespace, name: pod, uid } = metadata;
      return async ({ method, path }: HttpRequest) => {
        const description = {
          message: 'This container is simulated. It answers each request with this description.',
          namespace,
          pod,
          uid,
          container: name,
          image,
          command,
          args,
          port,
          request: { method, path },
        };
        return {
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: once(`${JSON.stringify(description, undefined, 2)}\n`),
        };
      };
    }
    throw new Error(`no container of the simulated Pod declares port ${number} in its ports`);
  };
}

async function* once(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield new TextEncoder().encode(text);
}
