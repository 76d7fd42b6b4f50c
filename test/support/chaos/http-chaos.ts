import type { HttpHandler, HttpRequest, HttpResponse } from '../../../src/util/http.ts';

/** Injects a fault into the requests of a handler. */
export class HttpChaos {
  /** The current fault, if any. */
  fault: ((request: HttpRequest, handler: HttpHandler) => Promise<HttpResponse>) | undefined;
  /** Number of affected requests. */
  hits = 0;

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    (request) => {
      if (!this.fault) return handler(request);
      this.hits++;
      return this.fault(request, handler);
    };
}

export function isWatch({ path }: HttpRequest): boolean {
  return /[?&]watch=true/.test(path);
}

export function isInitialStream({ path }: HttpRequest): boolean {
  return /[?&]sendInitialEvents=true/.test(path);
}

export function answer(
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = { 'content-type': 'application/json' },
): HttpResponse {
  return { status, headers, body: once(body) };
}

/** Returns the response with lines changed by `change`, which returns undefined to drop a line. */
export function eachLine(
  response: HttpResponse,
  change: (line: string) => string | undefined,
): HttpResponse {
  async function* lines() {
    let rest = '';
    for await (const chunk of response.body) {
      const parts = (rest + Buffer.from(chunk).toString()).split('\n');
      rest = parts.pop() ?? '';
      for (const line of parts) {
        const changed = change(line);
        if (changed !== undefined) yield Buffer.from(`${changed}\n`);
      }
    }
  }
  return { ...response, body: lines() };
}

/** Returns the first half of a response. */
export async function firstHalf(response: HttpResponse): Promise<HttpResponse> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of response.body) chunks.push(chunk);
  const whole = Buffer.concat(chunks);
  return { ...response, body: once(whole.subarray(0, whole.length / 2).toString()) };
}

async function* once(text: string): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from(text);
}
