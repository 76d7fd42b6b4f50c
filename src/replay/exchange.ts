import { CompleteBody } from '../util/complete-body.ts';
import type { HttpResponse } from '../util/http.ts';

/** Returns a JSON response. */
export function jsonAnswer(status: number, body: unknown): HttpResponse {
  const headers = { 'content-type': 'application/json' };
  return { status, headers, body: new CompleteBody(JSON.stringify(body)) };
}

const EVENTS = /^\/(?:api\/v1|apis\/events\.k8s\.io\/v1)\/namespaces\/[^/]+\/events(?:[/?]|$)/;

/** Returns whether a request writes or reads Events, which are recorded when a sync records them. */
export function isOfEvents({ path }: { readonly path: string }): boolean {
  return EVENTS.test(path);
}
