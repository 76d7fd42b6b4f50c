import { rejectOnAbort } from './abort.ts';

/** An answer of a service: a status, a response, or a failed connection. */
export type FakeAnswer = number | Response | Error;

/**
 * A stand-in for `fetch`, for tests of controllers that call other services. Records the requests and answers them with
 * status 200 and no body, unless `answer` or `respond` say otherwise.
 *
 * @experimental
 */
export class FakeFetch {
  /** All requests, in order. */
  readonly requests: Request[] = [];
  /**
   * Answers the requests for which `answer` has nothing left. A promise that stays pending is a service that hangs.
   * @default status 200
   */
  respond: (request: Request) => FakeAnswer | Promise<FakeAnswer> = () => 200;
  readonly #answers: { readonly calls: string; readonly answer: FakeAnswer }[] = [];

  /** Method and URL of each request: `GET https://service/records`. */
  get calls(): string[] {
    return this.requests.map(callOf);
  }

  /** Pass it to the controller in place of the global `fetch`. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const request = new Request(input, init);
    this.requests.push(request);
    const call = callOf(request);
    const next = this.#answers.findIndex(({ calls }) => call.startsWith(calls));
    const [set] = next < 0 ? [] : this.#answers.splice(next, 1);
    const answered = Promise.resolve(set ? set.answer : this.respond(request.clone()));
    const answer = await rejectOnAbort(answered, request.signal);
    return responseOf(answer);
  };

  /**
   * Sets the answers of the next requests, in order. If the first argument is a text, they are for calls that start with
   * it: a method, or a method and the start of a URL.
   *
   *     service.answer(503, new Error('refused'));
   *     service.answer('DELETE https://service/records', 404);
   */
  answer(...answers: readonly [calls: string, ...FakeAnswer[]] | readonly FakeAnswer[]): void {
    const [calls, ...others] = answers;
    const isRoute = typeof calls === 'string';
    for (const answer of (isRoute ? others : answers) as FakeAnswer[]) {
      this.#answers.push({ calls: isRoute ? calls : '', answer });
    }
  }
}

/** @throws the answer, if it is the error of a failed connection */
export function responseOf(answer: FakeAnswer): Response {
  if (answer instanceof Error) throw answer;
  return typeof answer === 'number' ? new Response(null, { status: answer }) : answer;
}

function callOf({ method, url }: Request): string {
  return `${method} ${url}`;
}
