import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { DEPLOYMENTS, EVENTS, LEASES } from '../../src/api/builtin.ts';
import { killAll } from '../support/program.ts';
import type { Program } from '../support/program.ts';
import type { ControlPlane } from '../support/control-plane.ts';
import { startControlPlane } from '../support/control-plane.ts';
import { findKubectl, Kubectl } from '../support/kubectl.ts';
import { runInPod, whyNoPodEnvironment, writeServiceAccount } from '../support/pod.ts';
import { LatencyProbe } from '../support/latency-probe.ts';
import { until } from '../support/until.ts';

/**
 * Installs the daemon as a platform team does, kills a replica, stops one and updates all. Each test
 * measures at the API server how long an object waits for the objects that it owns.
 */

const ROOT = join(import.meta.dirname, '../..');
const SYSTEM = 'crd-controller-system';

/** The tested fields of a container in a manifest. */
interface Container {
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath: string } };
  }[];
}

/** Times of the leader election, in milliseconds. */
interface Terms {
  readonly leaseMs: number;
  readonly deadlineMs: number;
  readonly retryMs: number;
}

const SHORT: Terms = { leaseMs: 4000, deadlineMs: 3000, retryMs: 1000 };
const DEFAULT: Terms = { leaseMs: 15_000, deadlineMs: 10_000, retryMs: 2000 };

/** Upper bound documented in docs/reliability.md. */
const afterKill = ({ leaseMs, retryMs }: Terms) => leaseMs + retryMs;
const afterStop = ({ retryMs }: Terms) => retryMs + 1000;

const kubectlProgram = findKubectl();
const skip =
  process.env['CONTROL_PLANE'] !== 'cluster'
    ? 'needs a whole control plane: npm run test:real'
    : kubectlProgram === undefined
      ? 'kubectl not found'
      : whyNoPodEnvironment();

describe(
  'An installation with objects of every kind',
  {
    skip: skip ?? false,
    timeout: 580_000,
  },
  () => {
    let plane: ControlPlane;
    let kubectl: Kubectl;
    let probe: LatencyProbe;
    let folder: string;
    let container: Container;
    const replicas: Replica[] = [];

    before(async () => {
      folder = mkdtempSync(join(tmpdir(), 'high-availability-'));
      const program = join(folder, 'image');
      execFileSync(process.execPath, [join(ROOT, 'hack/bundle.ts'), program], { stdio: 'pipe' });
      plane = await startControlPlane();
      assert.ok(kubectlProgram);
      kubectl = new Kubectl({
        program: kubectlProgram,
        kubeconfig: plane.kubeconfigPath,
        namespace: SYSTEM,
      });
      await install();
      probe = await LatencyProbe.open(plane.client, 'probe');
    });
    after(async () => {
      await killAll(replicas.map(({ program }) => program));
      await probe?.close();
      kubectl?.close();
      await plane?.close();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Installs with kubectl, and provides what kubelet provides to a Pod. */
    const install = async () => {
      await kubectl.run('apply', '-k', join(ROOT, 'hack/deploy'));
      await kubectl.run('wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all');
      const token = await kubectl.run('create', 'token', 'crd-controller', '--duration=1h');
      const { ca } = plane.config;
      assert.equal(ca?.kind, 'data');
      writeServiceAccount(folder, { token: token.trim(), ca: ca.pem, namespace: SYSTEM });
      const { spec } = await plane.client.get(DEPLOYMENTS, {
        namespace: SYSTEM,
        name: 'crd-controller',
      });
      const [first] = spec?.template.spec?.containers ?? [];
      assert.ok(first);
      assert.ok(first.args?.includes('--leader-elect'));
      container = first;
    };

    const start = async (name: string, terms: Terms): Promise<Replica> => {
      const { leaseMs, deadlineMs, retryMs } = terms;
      const command = [
        process.execPath,
        join(folder, 'image/crd-controller.mjs'),
        // All Pods run on this machine, where each port exists once.
        ...(container.args ?? []).filter((flag) => !/^--(metrics|health)/.test(flag)),
        '--health-probe-bind-address=127.0.0.1:0',
        `--leader-elect-lease-duration=${leaseMs}ms`,
        `--leader-elect-renew-deadline=${deadlineMs}ms`,
        `--leader-elect-retry-period=${retryMs}ms`,
      ];
      const environment = environmentOf(container, { name, namespace: SYSTEM });
      const program = runInPod(command, {
        account: folder,
        server: plane.config.server,
        environment,
      });
      const replica = new Replica(name, program);
      replicas.push(replica);
      await replica.ready();
      return replica;
    };

    /** Starts replicas until two run, as a Deployment does. */
    const ensureTwoReplicas = async (terms: Terms) => {
      while (replicas.filter(({ isRunning }) => isRunning).length < 2) {
        await start(`replica-${replicas.length + 1}`, terms);
      }
    };

    const leader = async (): Promise<Replica> => {
      const holder = await until('a replica leads', async () => {
        const lease = { namespace: SYSTEM, name: 'crd-controller' };
        const { spec } = await plane.client.get(LEASES, lease);
        return spec?.holderIdentity || undefined;
      });
      const found = replicas.find(({ name }) => holder.startsWith(`${name}_`));
      assert.ok(found, `${holder} is not one of the replicas`);
      return found;
    };

    /** Returns the running replicas except `one`. */
    const others = (one: Replica) =>
      replicas.filter((replica) => replica !== one && replica.isRunning);

    /**
     * Runs `act` on the leader and asserts that no object created meanwhile waits longer than
     * `withinMs`.
     */
    const inTime = async (
      t: TestContext,
      withinMs: number,
      act: () => Promise<Record<string, number>>,
    ) => {
      let byKind: Record<string, number> = {};
      const { longestMs, created } = await probe.measureDuring(async () => {
        byKind = await act();
      });
      const all = { ...byKind, [`the longest of ${created}`]: longestMs };
      t.diagnostic(`waiting times in ms, limit ${withinMs}: ${JSON.stringify(all)}`);
      assert.ok(Math.max(...Object.values(all)) <= withinMs, JSON.stringify(all));
    };

    describe('with two replicas', () => {
      before(async () => {
        await ensureTwoReplicas(SHORT);
        await probe.createInitial();
      });
      beforeEach(() => ensureTwoReplicas(SHORT));

      it('one leads; the other is ready with synced caches', async () => {
        const one = await leader();
        const [other] = others(one);
        assert.ok(other);
        assert.match(other.program.stderr, /"Caches populated"/);
        assert.doesNotMatch(other.program.stderr, /"Starting controller"/);
        assert.match(one.program.stderr, /source="in-cluster"/);
      });

      it('after the leader is killed, the other syncs within lease duration + retry period', async (t) => {
        const one = await leader();
        await inTime(t, afterKill(SHORT), async () => {
          one.program.child.kill('SIGKILL');
          return probe.createAll('killed');
        });
      });

      it('after the leader is stopped, the other syncs within retry period + 1 s', async (t) => {
        const one = await leader();
        await inTime(t, afterStop(SHORT), async () => {
          one.program.child.kill('SIGTERM');
          return probe.createAll('stopped');
        });
        assert.equal((await one.program.ended()).code, 0, one.program.stderr);
      });

      it('during a rolling update, no object waits longer than retry period + 1 s', async (t) => {
        await inTime(t, afterStop(SHORT), async () => {
          const previous = others(await start('updated-1', SHORT));
          for (const [index, each] of previous.entries()) {
            each.program.child.kill('SIGTERM');
            assert.equal((await each.program.ended()).code, 0, each.program.stderr);
            if (index + 1 < previous.length) await start(`updated-${index + 2}`, SHORT);
          }
          return {};
        });
        assert.match((await leader()).name, /^updated-/);
      });

      it('after all replicas were stopped, the lease has no holder', async () => {
        const running = replicas.filter(({ isRunning }) => isRunning);
        for (const { program } of running) program.child.kill('SIGTERM');
        for (const { program } of running) {
          assert.equal((await program.ended()).code, 0, program.stderr);
        }
        const lease = { namespace: SYSTEM, name: 'crd-controller' };
        assert.equal((await plane.client.get(LEASES, lease)).spec?.holderIdentity, '');
      });
    });

    describe('with two replicas and the default times', () => {
      beforeEach(() => ensureTwoReplicas(DEFAULT));

      it('after the leader is stopped, the other syncs within 3 s', async (t) => {
        const one = await leader();
        await inTime(t, afterStop(DEFAULT), async () => {
          one.program.child.kill('SIGTERM');
          return probe.createAll('stopped-by-default');
        });
      });

      it('after the leader is killed, the other syncs within 17 s', async (t) => {
        const one = await leader();
        await inTime(t, afterKill(DEFAULT), async () => {
          one.program.child.kill('SIGKILL');
          return probe.createAll('killed-by-default');
        });
      });
    });

    describe('after all disruptions', () => {
      it('no owned object was created twice or deleted', () => {
        assert.deepEqual(probe.deleted, []);
        const twice = [...probe.children]
          .filter(([, uids]) => uids.size > 1)
          .map(([child]) => child);
        assert.deepEqual(twice, []);
        assert.ok(probe.children.size > 30, `${probe.children.size} children`);
      });

      it('no event was recorded twice', async () => {
        const { items } = await plane.client.list(EVENTS, { namespace: probe.namespace });
        const counts = new Map<string, number>();
        for (const { involvedObject, reason, message, count = 1, source } of items) {
          if (!/^(count|webapp|at|foo)-controller$/.test(source?.component ?? '')) continue;
          const what = `${involvedObject.kind} ${involvedObject.name} ${involvedObject.uid}: ${reason} ${message}`;
          counts.set(what, (counts.get(what) ?? 0) + count);
        }
        assert.ok(counts.size > 30, `${counts.size} events`);
        assert.deepEqual(
          [...counts].filter(([, times]) => times > 1),
          [],
        );
      });

      it('no request was forbidden and no sync failed', () => {
        for (const { name, program } of replicas) {
          const errors = program.stderr.split('\n').filter((line) => /^E\d{4} /.test(line));
          assert.deepEqual(errors, [], name);
          assert.doesNotMatch(program.stderr, /May not watch|forbidden/);
        }
      });
    });
  },
);

/** Returns the environment variables that kubelet sets in a container of the Pod `metadata`. */
function environmentOf(
  { env = [] }: Container,
  metadata: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    env.map(({ name, value, valueFrom }) => {
      const field = valueFrom?.fieldRef?.fieldPath.replace(/^metadata\./, '') ?? '';
      const set = value ?? metadata[field];
      assert.ok(set !== undefined, name);
      return [name, set];
    }),
  );
}

/** A process of the daemon. */
class Replica {
  readonly name: string;
  readonly program: Program;

  constructor(name: string, program: Program) {
    this.name = name;
    this.program = program;
  }

  get isRunning(): boolean {
    const { exitCode, signalCode } = this.program.child;
    return exitCode === null && signalCode === null && !this.program.child.killed;
  }

  /** Resolves when the readiness probe succeeds. */
  async ready(): Promise<void> {
    const listening = /"Listening".* address="([^"]+)"/;
    await this.program.printed(listening);
    const [, address] = listening.exec(this.program.stderr) ?? [];
    await until(`${this.name} is ready`, async () => {
      const answer = await fetch(`http://${address}/readyz`);
      await answer.body?.cancel();
      return answer.ok || undefined;
    });
  }
}
