import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  LEASES,
  PODS,
  SECRETS,
  SERVICES,
} from '../../../src/api/builtin.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { InformerSet } from '../../../src/cache/informer-set.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler, HttpRequest } from '../../../src/util/http.ts';
import { seededRandom } from '../../../src/util/seeded-random.ts';

const RESOURCES: readonly Resource[] = [PODS, SERVICES, SECRETS, DEPLOYMENTS, CONFIG_MAPS];

/** How the server fails. */
const FAILURES = {
  refused: () => {
    throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });
  },
  500: () => response(500),
  503: () => response(503),
  504: () => response(504),
  403: () => response(403),
  429: () => response(429),
  '503 with Retry-After': () => response(503, { 'retry-after': '61' }),
} as const;

function response(status: number, headers: Record<string, string> = {}) {
  return { status, headers, body: (async function* () {})() };
}

/** Informers and a client of the Lease, behind a network that can fail. */
class Fixture {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  /** Fails requests that it returns true for. */
  fails: (request: HttpRequest) => boolean = () => false;
  failure: keyof typeof FAILURES = 'refused';
  /** Times of requests of the informers, in milliseconds. */
  readonly requests: { readonly path: string; readonly atMs: number }[] = [];
  readonly informers: InformerSet;
  readonly #client: HttpClient;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(resources = RESOURCES, random = seededRandom(1)) {
    const handler: HttpHandler = async (request) => {
      if (!request.path.includes('/leases')) {
        this.requests.push({ path: request.path, atMs: this.clock.monotonic() });
      }
      return this.fails(request) ? FAILURES[this.failure]() : this.server.handler(request);
    };
    this.#client = new HttpClient({ handler, server: 'https://test', clock: this.clock });
    this.informers = new InformerSet(this.#client, { clock: this.clock, random });
    for (const resource of resources) this.informers.for(resource);
    this.#running = this.informers.run(this.#stop.signal);
  }

  /** Lets requests to everything but Leases fail for `ms`, and ends the watches. */
  async outage(failure: keyof typeof FAILURES, ms: number): Promise<void> {
    this.failure = failure;
    this.fails = () => true;
    this.server.faults.dropWatches();
    await this.clock.advance(ms);
  }

  /** Sends a request as a leader that renews its Lease. */
  async renew(): Promise<void> {
    const client = this.#client.withOptions({ userAgent: 'leader-election' });
    await client.list(LEASES, { namespace: 'default' });
    await settle();
  }

  /** The number of informers that watch. */
  get watching(): number {
    return this.informers.informers.filter(({ progress }) => progress.phase === 'watching').length;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

describe('Informers that wait for a server', () => {
  for (const [failure, endsEarly] of [
    ['refused', true],
    [500, true],
    [503, true],
    [504, true],
    [403, false],
    [429, false],
    ['503 with Retry-After', false],
  ] as const) {
    it(`${endsEarly ? 'list within a second' : 'wait'} when another request succeeds after ${failure}`, async () => {
      const fixture = new Fixture();
      await fixture.clock.advance(5000);
      await fixture.outage(failure, 200_000);
      assert.equal(fixture.watching, 0);
      fixture.fails = () => false;
      const before = fixture.requests.length;
      await fixture.renew();
      assert.equal(fixture.requests.length, before, 'not at the same instant');
      await fixture.clock.advance(1000);
      if (endsEarly) {
        assert.equal(fixture.watching, RESOURCES.length);
        const first = new Map(
          fixture.requests.slice(before).map(({ path, atMs }) => [path.split('?')[0], atMs]),
        );
        assert.equal(new Set(first.values()).size, RESOURCES.length, 'each at its own time');
      } else {
        assert.equal(fixture.watching, 0);
      }
      await fixture.stop();
    });
  }

  it('see the first event within 2 s of the first answer after each of several outages', async () => {
    const fixture = new Fixture();
    await fixture.clock.advance(5000);
    for (let outage = 0; outage < 8; outage++) {
      await fixture.outage('refused', 10_000);
      // One attempt too early.
      fixture.fails = ({ path }) => !path.includes('/leases');
      await fixture.renew();
      await fixture.clock.advance(10_000);
      fixture.fails = () => false;
      await fixture.renew();
      await fixture.clock.advance(2000);
      assert.equal(fixture.watching, RESOURCES.length, `outage ${outage}`);
      await fixture.clock.advance(3000);
    }
    await fixture.stop();
  });

  it('see the first event within 2 s after a server that returns has read its roles', async () => {
    const fixture = new Fixture();
    await fixture.clock.advance(5000);
    await fixture.outage('refused', 300_000);
    const before = fixture.requests.length;
    fixture.failure = 403;
    while (fixture.requests.length === before) await fixture.clock.advance(100);
    await fixture.clock.advance(1000);
    fixture.fails = () => false;
    await fixture.clock.advance(2000);
    assert.equal(fixture.watching, RESOURCES.length);
    await fixture.stop();
  });

  it('see the first event within 2 s although they have just failed', async () => {
    const fixture = new Fixture(RESOURCES, () => 0.99);
    await fixture.clock.advance(5000);
    await fixture.outage('refused', 1600);
    fixture.fails = () => false;
    await fixture.renew();
    await fixture.clock.advance(2000);
    assert.equal(fixture.watching, RESOURCES.length);
    await fixture.stop();
  });

  it('at most double the requests for a resource that keeps failing', async () => {
    const attempts = async (renews: boolean): Promise<number> => {
      const fixture = new Fixture([PODS]);
      fixture.fails = ({ path }) => path.includes('/pods');
      fixture.failure = 500;
      for (let second = 0; second < 400; second += 2) {
        if (renews) await fixture.renew();
        await fixture.clock.advance(2000);
      }
      await fixture.stop();
      return fixture.requests.length;
    };
    const [alone, withRenewals] = [await attempts(false), await attempts(true)];
    assert.ok(withRenewals <= 2 * alone, `${withRenewals} requests instead of ${alone}`);
  });

  it('reach a load balancer with one broken server soon, without a burst of requests', async () => {
    const random = seededRandom(2);
    const fixture = new Fixture();
    await fixture.clock.advance(5000);
    await fixture.outage(503, 200_000);
    const before = fixture.requests.length;
    fixture.fails = ({ path }) => !path.includes('/leases') && random() < 1 / 3;
    let reachedMs = 0;
    for (; fixture.watching < RESOURCES.length; reachedMs += 500) {
      if (reachedMs % 2000 === 0) await fixture.renew();
      await fixture.clock.advance(500);
      assert.ok(reachedMs < 20_000);
    }
    const requests = fixture.requests.length - before;
    assert.ok(requests < 12 * RESOURCES.length, `${requests} requests`);
    await fixture.stop();
  });
});
