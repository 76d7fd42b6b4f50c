import type { HttpHandler, HttpRequest } from '../../src/util/http.ts';
import { untilAborted } from '../../src/util/abort.ts';

/** Where a daemon dies: at its n-th write, which the server either never sees or carries out. */
export interface Death {
  readonly atWrite: number;
  readonly when: 'before' | 'after';
}

/**
 * The life of a daemon, from its network's point of view. A process that dies at a write hears
 * nothing any more and says nothing any more; from outside it is simply gone.
 *
 * Only writes that were carried out count: a daemon that finds its forerunner's work done lives on.
 */
export class Life {
  readonly #death: Death | undefined;
  #writes = 0;
  #requests = 0;
  #isOver = false;

  constructor(death?: Death) {
    this.#death = death;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** So many requests there were; who waits for quiet looks whether it grows. */
  get requests(): number {
    return this.#requests;
  }

  /** So many writes were carried out. */
  get writes(): number {
    return this.#writes;
  }

  readonly around =
    (handler: HttpHandler): HttpHandler =>
    async (request) => {
      if (this.#isOver) return silence(request);
      this.#requests++;
      // An empty patch changes nothing: it is a read.
      const isWrite = request.method !== 'GET' && request.body !== '{}';
      const { atWrite, when } = this.#death ?? { atWrite: Infinity, when: 'after' };
      if (isWrite && when === 'before' && this.#writes + 1 >= atWrite) return this.#die(request);
      const response = await handler(request);
      if (isWrite && response.status < 300) this.#writes++;
      if (when === 'after' && this.#writes >= atWrite) return this.#die(request);
      return response;
    };

  #die(request: HttpRequest): Promise<never> {
    this.#isOver = true;
    return silence(request);
  }
}

async function silence({ signal }: HttpRequest): Promise<never> {
  await (signal ? untilAborted(signal) : new Promise(() => undefined));
  throw signal?.reason;
}
