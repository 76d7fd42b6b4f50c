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

/** Candidates for one lease on an embedded API server, in virtual time. */
export class Candidates {
  readonly clock = new FakeClock();
  readonly server = new ApiServer({ clock: this.clock });
  readonly client = this.clientOver(this.server.handler);

  /** Starts a candidate with its own elector. */
  async start(identity: string, options: CandidateOptions = {}): Promise<Candidate> {
    const candidate = new Candidate(this, identity, options);
    candidate.run();
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

  /** Writes the spec of the lease like another process. */
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

  clientOver(handler: HttpHandler): HttpClient {
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
   * Wraps the transport of the candidate.
   * @default no wrapper
   */
  readonly around?: (handler: HttpHandler) => HttpHandler;
  readonly options?: Partial<LeaderElectorOptions>;
  readonly deps?: Partial<LeaderElectorDeps>;
}

/** A leader elector with its requests, events and log. */
export class Candidate {
  readonly elector: LeaderElector;
  /** The verbs of its requests, without the watch. */
  readonly trace: string[] = [];
  /** The events that it recorded. */
  readonly events: string[] = [];
  readonly #recording = recordingLogger();
  readonly #stop = new AbortController();
  #ending: Promise<'ended' | Error> | undefined;
  /** Wraps the transport; can be replaced at any time. */
  around: (handler: HttpHandler) => HttpHandler;

  constructor(
    candidates: Candidates,
    identity: string,
    { options, deps, around = (handler) => handler }: CandidateOptions,
  ) {
    this.around = around;
    const handler: HttpHandler = (request) => {
      const verb = verbOf(request);
      if (verb !== 'watch') this.trace.push(verb);
      return this.around(candidates.server.handler)(request);
    };
    this.elector = new LeaderElector(
      {
        client: candidates.clientOver(handler),
        clock: candidates.clock,
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

  run(): void {
    this.#ending = this.elector.run(this.#stop.signal).then(
      () => 'ended' as const,
      (error: unknown) => error as Error,
    );
  }

  /** Aborts the elector. */
  stop(reason: unknown = new Error('SIGTERM')): void {
    this.#stop.abort(reason);
  }

  /** Returns the result of the elector. Rejects if it is still running. */
  async ending(): Promise<'ended' | Error> {
    const pending = settle().then(() => 'still running' as const);
    const ending = await Promise.race([this.#ending, pending]);
    assert.ok(ending !== undefined && ending !== 'still running', 'the elector is still running');
    return ending;
  }

  /** Log messages up to a verbosity, with errors. */
  lines(verbosity = 0): string[] {
    return this.#recording.lines
      .filter(({ level }) => level === 'error' || level <= verbosity)
      .map(({ message }) => message);
  }

  get leads(): boolean {
    return this.elector.isLeading && this.elector.mayWrite();
  }
}
