import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ClusterConfig } from '../../src/client/cluster-config.ts';
import { credentialsOf } from '../../src/client/credentials.ts';
import { HttpClient } from '../../src/client/http-client.ts';
import type { HttpHandler, HttpResponse } from '../../src/util/http.ts';
import { recordingLogger } from '../support/recording-logger.ts';
import { Simulation } from '../support/simulation.ts';

const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token';
const MINUTE_MS = 60_000;

const CONFIG: ClusterConfig = {
  source: 'in-cluster',
  server: 'https://simulated',
  insecureSkipTlsVerify: false,
  credentials: { kind: 'tokenFile', path: TOKEN_FILE },
  namespace: 'default',
};

/** A simulation whose server asks its daemon for a token, which the daemon has from a file. */
class GuardedWorld extends Simulation {
  /** What the file has in it; undefined: it is not there. */
  file: string | undefined = 'first';
  /** The tokens that the server accepts. */
  accepted: readonly string[] = ['first'];
  /** The daemon's requests since the last look, as `accepted GET /api/...`. */
  readonly requests: string[] = [];

  override startDaemon(): () => Promise<void> {
    const { clock } = this;
    const { log } = recordingLogger(this.lines);
    const credentials = credentialsOf(CONFIG, { clock, log, readFile: () => this.#read() });
    const { server } = CONFIG;
    const handler = this.#guarded(this.server.handler);
    return super.startDaemon({}, new HttpClient({ handler, server, clock, log, credentials }));
  }

  /** How many requests there were of those that match. */
  requested(what: RegExp): number {
    return this.requests.filter((request) => what.test(request)).length;
  }

  async #read(): Promise<string> {
    if (this.file === undefined) throw new Error(`ENOENT: no such file, ${TOKEN_FILE}`);
    return this.file;
  }

  #guarded(handler: HttpHandler): HttpHandler {
    return async (request) => {
      const { method, path, headers } = request;
      const token = headers['authorization']?.replace(/^Bearer /, '') ?? '';
      const isAccepted = this.accepted.includes(token);
      this.requests.push(`${isAccepted ? 'accepted' : 'refused'} ${method} ${path}`);
      return isAccepted ? handler(request) : unauthorized();
    };
  }
}

describe('given a daemon whose token somebody else keeps fresh', () => {
  let world: GuardedWorld;

  beforeEach(async () => {
    world = new GuardedWorld();
    world.startCluster();
    await world.installCrd();
    world.startDaemon();
    await world.applyCount();
    await world.untilReady(3);
    await world.pass(MINUTE_MS);
    world.requests.length = 0;
  });
  afterEach(() => world.end());

  it('a new token is in use within a minute: nothing is refused, nothing begins anew', async () => {
    world.file = 'second';
    world.accepted = ['first', 'second'];
    await world.pass(MINUTE_MS);
    world.accepted = ['second'];
    await world.patchCount({ count: 5 });
    await world.untilReady(5);
    assert.equal(world.requested(/^refused/), 0);
    assert.equal(world.requested(/GET .*(watch=|limit=)/), 0, 'no watch and no list was made');
    assert.deepEqual(world.errors(), []);
  });

  it('an old token that is refused costs one repetition, and no sync fails', async () => {
    await world.patchCount({ count: 4 });
    await world.untilReady(4);
    world.requests.length = 0;
    world.file = 'second';
    world.accepted = ['second'];
    await world.patchCount({ count: 5 });
    await world.untilReady(5);
    // Those at the same time as the first.
    assert.ok(world.requested(/^refused/) <= 3, world.requests.join('\n'));
    assert.ok(world.requested(/^refused/) >= 1);
    assert.equal(world.requested(/GET .*(watch=|limit=)/), 0);
    assert.deepEqual(world.errors(), []);
  });

  it('while the file is absent or empty, the last good token serves, and the log says so', async () => {
    for (const file of [undefined, '', '\n']) {
      world.file = file;
      world.lines.length = 0;
      await world.pass(2 * MINUTE_MS);
      const { spec } = await world.count();
      await world.patchCount({ count: spec.count + 1 });
      await world.untilReady(spec.count + 1);
      for (const line of world.errors()) assert.match(line, /^Failed to read the token file/);
      assert.ok(world.errors().length >= 1);
    }
    assert.equal(world.requested(/^refused/), 0);
  });

  it('refused for good, it asks ever less often, and goes on by itself', async () => {
    world.accepted = ['other'];
    world.server.faults.dropWatches();
    await world.patchCount({ count: 5 });
    await world.pass(10 * MINUTE_MS);
    const asked = world.requests.length;
    world.requests.length = 0;
    await world.pass(10 * MINUTE_MS);
    // Two informers ask for a stream and then for a list, each twice, and pause for half a minute or more.
    const most = 2 * (2 + 2) * 20;
    assert.ok(world.requests.length <= most, `${world.requests.length} in ten minutes`);
    assert.ok(asked <= 1.5 * most, `${asked} in the first ten minutes`);
    assert.ok(world.requests.length >= most / 4, `${world.requests.length}: it goes on trying`);
    assert.equal(world.requested(/^accepted/), 0);

    world.file = 'other';
    await world.until('5 Pods', async () => (await world.pods()).length === 5, {
      withinMs: 2 * MINUTE_MS,
    });
    await world.untilReady(5);
    const again = world.errors().length;
    await world.pass(10 * MINUTE_MS);
    assert.equal(world.errors().length, again);
  });
});

function unauthorized(): HttpResponse {
  const body = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: 'Unauthorized',
    reason: 'Unauthorized',
    code: 401,
  };
  return {
    status: 401,
    headers: { 'content-type': 'application/json' },
    body: (async function* () {
      yield Buffer.from(JSON.stringify(body));
    })(),
  };
}
