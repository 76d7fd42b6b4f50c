import type { HttpRequest } from '../../util/http.ts';
import { nextTurn } from '../../util/next-turn.ts';

/** Rounds of the event loop without a step, after which a write waits for something else, such as a webhook. */
const IDLE_ROUNDS = 3;

/** The turns of the large writes of a server. Each needs much memory, so only one of them proceeds at a time. */
export class WriteTurns {
  /** The large write whose turn it is. */
  #holder: { readonly request: HttpRequest; steps: number } | undefined;

  /** Waits until another step of a large write may run. */
  async next(request: HttpRequest): Promise<void> {
    let seen: { readonly by: HttpRequest | undefined; readonly steps: number } | undefined;
    let idleRounds = 0;
    for (;;) {
      await nextTurn();
      const holder = this.#holder;
      if (holder?.request === request) {
        holder.steps++;
        return;
      }
      const isIdle = seen?.by === holder?.request && seen?.steps === holder?.steps;
      idleRounds = isIdle ? idleRounds + 1 : 0;
      if (!holder || idleRounds > IDLE_ROUNDS) {
        this.#holder = { request, steps: 0 };
        return;
      }
      seen = { by: holder.request, steps: holder.steps };
    }
  }

  /** Ends the turn of a request. */
  end(request: HttpRequest): void {
    if (this.#holder?.request === request) this.#holder = undefined;
  }
}
