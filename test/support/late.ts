import type { HttpHandler } from '../../src/util/http.ts';
import type { Simulation } from './simulation.ts';

/** What watches say comes `lagMs` milliseconds late, one thing after the other. */
export function late(world: Simulation, lagMs: number): (handler: HttpHandler) => HttpHandler {
  async function* held(body: AsyncIterable<Uint8Array>) {
    for await (const chunk of body) {
      await world.sleep(lagMs);
      yield chunk;
    }
  }
  return (handler) => async (request) => {
    const response = await handler(request);
    const isWatch = /[?&]watch=true/.test(request.path);
    return isWatch ? { ...response, body: held(response.body) } : response;
  };
}
