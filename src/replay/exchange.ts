import type { HttpResponse, ResponseBody } from '../util/http.ts';

/** Returns a body that has arrived. */
export function bodyOf(bytes: Uint8Array): ResponseBody {
  let isRead = false;
  return {
    received: () => {
      if (isRead) return undefined;
      isRead = true;
      return bytes;
    },
    async *[Symbol.asyncIterator]() {
      isRead = true;
      yield bytes;
    },
  };
}

/** Returns a JSON response. */
export function jsonAnswer(status: number, body: unknown): HttpResponse {
  const bytes = Buffer.from(JSON.stringify(body));
  return { status, headers: { 'content-type': 'application/json' }, body: bodyOf(bytes) };
}

const EVENTS = /^\/(?:api\/v1|apis\/events\.k8s\.io\/v1)\/namespaces\/[^/]+\/events(?:[/?]|$)/;

/** Returns whether a request writes or reads Events, which are recorded when a sync records them. */
export function isOfEvents({ path }: { readonly path: string }): boolean {
  return EVENTS.test(path);
}
