/**
 * A stand-in for `fetch`, for tests of controllers that call other services. Records the requests and answers them with
 * status 200 and no body, unless `answer` was called.
 */
export class FakeFetch {
  /** All requests, in order. */
  readonly requests: Request[] = [];
  readonly #answers: (number | Response | Error)[] = [];

  /** Method and URL of each request: `GET https://service/records`. */
  get calls(): string[] {
    return this.requests.map(({ method, url }) => `${method} ${url}`);
  }

  /** Pass it to the controller in place of the global `fetch`. */
  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    this.requests.push(new Request(input, init));
    const answer = this.#answers.shift() ?? 200;
    if (answer instanceof Error) throw answer;
    return typeof answer === 'number' ? new Response(null, { status: answer }) : answer;
  };

  /** Answers each of the next requests with a status, a response or a failed connection. */
  answer(...answers: readonly (number | Response | Error)[]): void {
    this.#answers.push(...answers);
  }
}
