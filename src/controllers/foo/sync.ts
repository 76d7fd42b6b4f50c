import { isApiError, isNamespaceTerminating } from '../../api/api-error.ts';
import { DEPLOYMENTS } from '../../api/builtin.ts';
import type { Deployment } from '../../api/builtin.ts';
import type { Foo, FooStatus } from '../../api/generated/foo.ts';
import { objectKey } from '../../api/object-key.ts';
import type { DeepReadonly } from '../../api/object.ts';
import type { Readiness } from '../../api/readiness.ts';
import type { Lister } from '../../cache/lister.ts';
import { ensureChild } from '../../manager/child.ts';
import type { ChildOutcome } from '../../manager/child.ts';
import type { SyncContext, SyncHandler } from '../../manager/controller.ts';
import { OWNER_INDEX } from '../../manager/enqueue.ts';
import type { StatusWriter } from '../../manager/status-writer.ts';
import type { EventRecorder } from '../../record/event-recorder.ts';
import type { Clock } from '../../util/clock.ts';
import { done, TerminalError } from '../../workqueue/outcome.ts';
import { buildDeployment, COMPONENT, problemOf } from './deployment.ts';
import { buildStatus, readinessOf, wasTold } from './status.ts';

/** Dependencies of `FooSync`. */
export interface FooSyncDeps {
  readonly foos: Lister<Foo>;
  /** Indexed by `OWNER_INDEX`. */
  readonly deployments: Lister<Deployment>;
  readonly recorder: EventRecorder;
  readonly statuses: StatusWriter<Foo>;
  readonly clock: Clock;
}

/**
 * Makes the Deployment of one Foo what its spec says, and its status what the Deployment is. A
 * Deployment that somebody else has under that name is never written to; one of ours under a name
 * that the Foo had before goes, once that of the new name is there.
 */
export function fooSync(deps: FooSyncDeps): SyncHandler {
  return async (key, context) => {
    const foo = deps.foos.get(key);
    // Its Deployment goes with it: the garbage collector follows the owner reference.
    if (!foo || foo.metadata.deletionTimestamp !== undefined) return done();
    await new FooSync(deps, context, foo).run();
    return done();
  };
}

/** One run for one Foo. */
class FooSync {
  readonly #deps: FooSyncDeps;
  readonly #context: SyncContext;
  readonly #foo: DeepReadonly<Foo>;

  constructor(deps: FooSyncDeps, context: SyncContext, foo: DeepReadonly<Foo>) {
    this.#deps = deps;
    this.#context = context;
    this.#foo = foo;
  }

  async run(): Promise<void> {
    const problem = problemOf(this.#foo);
    if (problem !== undefined) return this.#giveUp('InvalidSpec', problem);
    const { namespace } = this.#foo.metadata;
    const { deploymentName: name } = this.#foo.spec;
    let outcome: ChildOutcome<Deployment>;
    try {
      outcome = await this.#ensureDeployment();
    } catch (cause) {
      // The Foo goes with its namespace; there is nothing to tell anybody.
      if (isNamespaceTerminating(cause)) return;
      if (!isApiError(cause, 'invalid')) throw cause;
      return this.#giveUp('DeploymentRefused', cause.message, cause);
    }
    switch (outcome.kind) {
      case 'nameCollision':
        return this.#refuse(name);
      case 'terminating': {
        const message = `Deployment "${name}" is being deleted; it is created anew when it is gone`;
        await this.#writeStatus(
          this.#statusOf({ kind: 'reconciling', reason: 'DeploymentLeaving', message }),
        );
        return;
      }
      case 'created':
      case 'updated':
        this.#context.log
          .v(2)
          .info(outcome.kind === 'created' ? 'Created Deployment' : 'Updated Deployment', {
            deployment: objectKey(namespace, name),
          });
        break;
      case 'unchanged':
    }
    await this.#deleteFormer(name);
    const status = this.#statusOf(readinessOf(outcome.object), outcome.object);
    await this.#tellSynced(outcome.kind !== 'unchanged', status);
    await this.#writeStatus(status);
  }

  #ensureDeployment(): Promise<ChildOutcome<Deployment>> {
    const { namespace } = this.#foo.metadata;
    return ensureChild(this.#context, {
      resource: DEPLOYMENTS,
      owner: this.#foo,
      desired: buildDeployment(this.#foo),
      cached: this.#deps.deployments.get(objectKey(namespace, this.#foo.spec.deploymentName)),
      fieldManager: COMPONENT,
    });
  }

  /** The Deployments of this Foo under names it no longer asks for. */
  async #deleteFormer(name: string): Promise<void> {
    const { client, signal, log } = this.#context;
    const owned = this.#deps.deployments.byIndex(OWNER_INDEX, this.#foo.metadata.uid);
    for (const { metadata } of owned) {
      if (metadata.name === name || metadata.deletionTimestamp !== undefined) continue;
      try {
        await client.delete(DEPLOYMENTS, metadata, { uid: metadata.uid, signal });
      } catch (error) {
        if (!isApiError(error, 'notFound', 'conflict')) throw error;
      }
      const deployment = objectKey(metadata.namespace, metadata.name);
      log.v(2).info('Deleted Deployment of the former name', { deployment });
    }
  }

  /**
   * The Foo is at fault: nothing happens until it is changed. That is said once.
   *
   * @param cause the server's answer, if it is the server that rejects it; then it is retried
   */
  async #giveUp(reason: string, message: string, cause?: unknown): Promise<void> {
    const { recorder, statuses } = this.#deps;
    const stalled = { kind: 'stalled', reason, message } as const;
    const status = this.#statusOf(stalled);
    const isNews = statuses.differs(this.#foo, status);
    if (isNews) {
      if (!statuses.hasFailed(this.#foo, status)) {
        await recorder.warning(this.#foo, reason, message).attempted(this.#context.signal);
      }
      await statuses.write(this.#context, this.#foo, status);
    }
    if (cause !== undefined) throw new Error(message, { cause });
    if (isNews) throw new TerminalError(message);
  }

  async #refuse(name: string): Promise<never> {
    const message = `Resource "${name}" already exists and is not managed by Foo`;
    this.#deps.recorder.warning(this.#foo, 'ErrResourceExists', message);
    await this.#writeStatus(
      this.#statusOf({ kind: 'stalled', reason: 'ErrResourceExists', message }),
    );
    throw new Error(message);
  }

  /** Before the status that says so: a crash in between repeats the event rather than losing it. */
  async #tellSynced(isNews: boolean, status: FooStatus): Promise<void> {
    const { recorder, statuses } = this.#deps;
    // Where there is no status to tell by, only what has just been done is told.
    if (statuses.hasSubresource) {
      if (wasTold(this.#foo) || statuses.hasFailed(this.#foo, status)) return;
    } else if (!isNews) return;
    const recorded = recorder.normal(this.#foo, 'Synced', 'Foo synced successfully');
    await recorded.attempted(this.#context.signal);
  }

  /** Nothing is written if the Foo says so already. */
  async #writeStatus(status: FooStatus): Promise<void> {
    const { statuses } = this.#deps;
    if (statuses.differs(this.#foo, status)) {
      await statuses.write(this.#context, this.#foo, status);
    }
  }

  #statusOf(readiness: Readiness, deployment?: DeepReadonly<Deployment>): FooStatus {
    return buildStatus(this.#foo, readiness, deployment, this.#deps.clock.now());
  }
}
