import assert from 'node:assert/strict';
import { LEASES } from '../../../src/api/builtin.ts';
import type { Lease } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { LeaderElector } from '../../../src/leaderelection/leader-elector.ts';
import type {
  LeaderElectorDeps,
  LeaderElectorOptions,
} from '../../../src/leaderelection/leader-elector.ts';
import type { LeaseSpec } from '../../../src/leaderelection/lease-state.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler, HttpRequest } from '../../../src/util/http.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

export const AT = { namespace: 'default', name: 'lock' };

const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update' };

function verbOf({ method, path }: HttpRequest): string {
  return /[?&]watch=true/.test(path) ? 'watch' : (VERBS[method] ?? method);
}

/** An API server and whoever wants to lead, in virtual time. */
export class Candidates {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  readonly client = this.#clientOver(this.server.handler);

  /** Somebody who asks for the lease and runs. */
  async start(identity: string, options: CandidateOptions = {}): Promise<Candidate> {
    const candidate = new Candidate(this, identity, options);
    candidate.begin();
    await settle();
    return candidate;
  }

  lease(): Promise<Lease> {
    return this.client.get(LEASES, AT);
  }

  async spec(): Promise<LeaseSpec> {
    return (await this.lease()).spec ?? {};
  }

  async holder(): Promise<string | undefined> {
    return (await this.spec()).holderIdentity;
  }

  /** Writes the lease as somebody else would. */
  async write(spec: LeaseSpec | undefined): Promise<void> {
    const { spec: _, ...lease } = await this.lease();
    await this.client.update(LEASES, { ...lease, ...(spec && { spec }) });
  }

  async create(spec?: LeaseSpec, labels: Record<string, string> = {}): Promise<void> {
    await this.client.create(LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...AT, labels },
      ...(spec && { spec }),
    });
  }

  clientFor(handler: HttpHandler): HttpClient {
    return this.#clientOver(handler);
  }

  #clientOver(handler: HttpHandler): HttpClient {
    return new HttpClient({
      handler,
      server: 'https://test',
      clock: this.clock,
      requestTimeoutMs: 5000,
    });
  }
}

export interface CandidateOptions {
  /**
   * What stands between it and the server at first.
   * @default nothing
   */
  readonly around?: (handler: HttpHandler) => HttpHandler;
  readonly options?: Partial<LeaderElectorOptions>;
  readonly deps?: Partial<LeaderElectorDeps>;
}

/** One elector, and what can be seen of it. */
export class Candidate {
  readonly elector: LeaderElector;
  /** Its requests, by verb. */
  readonly trace: string[] = [];
  /** What it said on the lease. */
  readonly events: string[] = [];
  readonly #recording = recordingLogger();
  readonly #stop = new AbortController();
  #ending: Promise<'ended' | Error> | undefined;
  /** What stands between it and the server. */
  around: (handler: HttpHandler) => HttpHandler;

  constructor(
    world: Candidates,
    identity: string,
    { options, deps, around = (handler) => handler }: CandidateOptions,
  ) {
    this.around = around;
    const handler: HttpHandler = (request) => {
      this.trace.push(verbOf(request));
      return this.around(world.server.handler)(request);
    };
    this.elector = new LeaderElector(
      {
        client: world.clientFor(handler),
        clock: world.clock,
        random: () => 0,
        log: this.#recording.log,
        recorder: {
          normal: (subject, reason, message) => {
            this.events.push(`${subject.kind} ${subject.metadata.name} ${reason}: ${message}`);
          },
        },
        ...deps,
      },
      { identity, ...AT, ...options },
    );
  }

  begin(): void {
    this.#ending = this.elector.run(this.#stop.signal).then(
      () => 'ended' as const,
      (error: unknown) => error as Error,
    );
  }

  /** Tells it to stop; what came of it is `ending`. */
  stop(reason: unknown = new Error('SIGTERM')): void {
    this.#stop.abort(reason);
  }

  /** How it ended; it must have. */
  async ending(): Promise<'ended' | Error> {
    const pending = settle().then(() => 'still running' as const);
    const ending = await Promise.race([this.#ending, pending]);
    assert.ok(ending !== undefined && ending !== 'still running', 'it is still running');
    return ending;
  }

  /** Messages up to a verbosity, errors included. */
  lines(verbosity = 0): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error' || level <= verbosity)
      .map(({ message }) => message);
  }

  get leads(): boolean {
    return this.elector.isLeading && this.elector.mayWrite();
  }
}
