import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { CLUSTER_ROLES, CONFIG_MAPS, NAMESPACES } from '../../../src/api/builtin.ts';
import type { Client } from '../../../src/client/client.ts';
import { countController } from '../../../src/controllers/count/controller.ts';
import { explore, ViolationError } from '../../../src/explore/explore.ts';
import type { ExploreOptions } from '../../../src/explore/explore.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../src/manager/controller-kit.ts';
import { OwnedObjects } from '../../../src/manager/owned-objects.ts';
import { done } from '../../../src/workqueue/outcome.ts';
import type { SyncHandler } from '../../../src/manager/controller-options.ts';
import { readRecording } from '../../../src/replay/read-recording.ts';
import { replay as replayFile } from '../../../src/replay/replay.ts';
import { Timeline } from '../../../src/replay/timeline.ts';
import type { TimelineEntry } from '../../../src/serving/page/timeline-report.ts';
import { EXPLORED } from '../../support/explored-programs.ts';
import {
  COUNT_AT,
  COUNT_SCENARIO,
  createNamed,
  CREATES_FROM_CACHE,
  FINALIZER,
  naiveOptions,
  patchMetadata,
  writeReplicas,
} from '../../support/naive-controllers.ts';
import type { NaiveController } from '../../support/naive-controllers.ts';
import { recordings } from '../../support/recorded-run.ts';

const COUNT: ExploreOptions = {
  ...COUNT_SCENARIO,
  controllers: [countController],
  budget: { schedules: 2 },
};

async function violation(options: ExploreOptions): Promise<ViolationError> {
  const error: unknown = await explore(options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ViolationError, String(error));
  return error;
}

describe('explore', () => {
  const file = recordings();

  it('has the same trace in every run with the same seed', async () => {
    const first = await explore(COUNT);
    assert.deepEqual(await explore(COUNT), first);
    assert.notEqual((await explore({ ...COUNT, seed: 2 })).traceHash, first.traceHash);
  });

  it('tells and repeats the shortest schedule in which a rule does not hold', async () => {
    const options = naiveOptions(CREATES_FROM_CACHE);
    const found = await violation({ ...options, faults: ['crash', 'stale'] });
    assert.equal(found.rule, 'nothing is created twice');
    assert.equal(found.replay.length, 2);
    assert.match(found.message, /crashes before .* starts, and reads the state before/s);
    const again = await violation({ ...options, replay: found.replay });
    assert.equal(again.detail, found.detail);
  });

  it('records the schedule in which a rule does not hold, and nothing else happens in it', async () => {
    const replay = [
      'crash @ controller: event of pods: ADDED default/web-vbs99 #1',
      'stale @ controller: restart #1',
    ];
    const recording = file('schedule.ndjson');
    const options = { ...naiveOptions(CREATES_FROM_CACHE), replay };
    const { message } = await violation(options);
    const recorded = await violation({ ...options, recording });
    assert.equal(recorded.message.split('\nShow it')[0], message);
    const { report } = new Timeline(recording, await readRecording(recording));
    const textsOf = (kind: TimelineEntry['kind']) =>
      report.entries.filter((entry) => entry.kind === kind).map(({ text }) => text);
    const written = /creates pods \S+/g;
    assert.deepEqual(textsOf('write').join('\n').match(written), message.match(written));
    assert.equal(textsOf('fault').length, 2);
    assert.ok(textsOf('change').includes('ADDED pods default/web-vbs99'));
    assert.ok(textsOf('sync').every((text) => text.startsWith('syncs default/test-count')));
    assert.deepEqual(
      report.entries.filter(({ kind }) => kind === 'request').map(({ result }) => result),
      ['no response', '201', '201'],
    );
    await assert.rejects(replayFile({ file: recording, controllers: [] }), /schedule of explore/);
  });

  it('checks an invariant after each write', async () => {
    const { rule, replay } = await violation({
      ...COUNT,
      invariants: {
        'a Count has no status': ({ list }) => list(COUNTS).every((count) => !count.status),
      },
    });
    assert.deepEqual([rule, replay], ['a Count has no status', []]);
  });

  it('lets admission change objects more than once in a schedule', async () => {
    const replay = [0, 1].map((n) => `mutate @ controller: create pods default/test-count-${n} #1`);
    await explore({ ...COUNT, replay });
  });

  it('expects no deletion of an object whose owner reference another client removed', async () => {
    const at = 'controller: patch counts/status default/test-count #1';
    await explore({ ...COUNT, replay: [`orphan @ ${at}`, 'teardown @ scenario: end #1'] });
  });

  it('expects no garbage, and lets controllers update the objects of users', async () => {
    const reports: NaiveController = {
      ...CREATES_FROM_CACHE,
      create: () => async (sync) => {
        await createNamed(sync, () => writeReplicas(sync, 1));
      },
      later: { 'the user deletes it': (client) => client.delete(COUNTS, COUNT_AT) },
    };
    const options = naiveOptions(reports);
    await explore({ ...options, replay: ['delete @ scenario: end #1'] });
    await explore({
      ...options,
      replay: ['occupy @ controller: create pods default/test-count-0 #1'],
    });
  });

  it('lets a user delete in the foreground', async () => {
    const removesAll: NaiveController = {
      ...CREATES_FROM_CACHE,
      syncsDeleted: true,
      create: () => async (sync) => {
        const isDeleted = sync.count.metadata.deletionTimestamp !== undefined;
        await patchMetadata(sync, { finalizers: isDeleted ? null : [FINALIZER] });
      },
      later: { 'the user deletes it': (client) => client.delete(COUNTS, COUNT_AT) },
    };
    const replay = ['foreground @ scenario: the user deletes it #1'];
    const { rule } = await violation({ ...naiveOptions(removesAll), replay });
    assert.equal(rule, 'finalizers of others are kept');
  });

  it('takes a delayed retry for no write in steady state', async () => {
    const replay = [
      'mutate @ controller: create pods default/test-count-1 #1',
      'refuse @ controller: patch counts/status default/test-count #1',
    ];
    await explore({ ...COUNT, replay });
  });

  it('creates CRDs again after controllers have removed their finalizers', async () => {
    const webApp = EXPLORED['webapp'];
    assert.ok(webApp);
    const outage = 'outage @ controller: patch webapps default/x #2';
    await explore({ ...webApp, replay: [outage, 'uninstall @ scenario: end #1'] });
  });

  it('lists again what a watch lost whose break is noticed after the restore', async () => {
    const foo = EXPLORED['foo'];
    assert.ok(foo);
    const replay = [
      'delay @ controller: event of deployments: ADDED default/x-site #1',
      'rollback @ controller: response to create deployments default/x-site #1',
    ];
    await explore({ ...foo, replay });
  });

  it('restores the server more than once in a schedule', async () => {
    const replay = ['1 #1', '0 #2'].map(
      (nth) => `rollback @ controller: response to create pods default/test-count-${nth}`,
    );
    await explore({ ...COUNT, replay });
  });

  it('deletes an owned namespace with its objects, as the namespace controller does', async () => {
    const controllers = (kit: ControllerKit) => {
      const owners = kit.informers.for(CLUSTER_ROLES, { labelSelector: 'team' });
      const owned = new OwnedObjects(CLUSTER_ROLES, 'team')
        .add(kit.informers.for(NAMESPACES))
        .add(kit.informers.for(CONFIG_MAPS));
      const sync: SyncHandler = async (key, context) => {
        const owner = owners.lister.get(key);
        if (!owner) return done();
        await owned.ensure(context, owner, [
          { apiVersion: 'v1', kind: 'Namespace', metadata: { name: key } },
          { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: key, name: 'env' } },
        ]);
        return done();
      };
      return [
        new Controller(kit, { name: 'team', kind: 'ClusterRole', sync }).for(owners).owns(owned),
      ];
    };
    const metadata = { name: 'red', labels: { team: 'yes' } };
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata,
      rules: [],
    };
    const scenario = {
      'a user creates it': (client: Client) => client.create(CLUSTER_ROLES, role),
    };
    for (const fault of ['teardown @ scenario: end #1', 'delete @ scenario: end #1']) {
      await explore({ controllers, scenario, replay: [fault] });
    }
  });

  it('reports controllers that differ from run to run', async () => {
    let runs = 0;
    const options = naiveOptions({
      ...CREATES_FROM_CACHE,
      create: () => async (sync) => {
        const body = { metadata: { annotations: { run: String(runs++) } } };
        if (sync.count.metadata.annotations) return;
        await sync.client.patch(COUNTS, COUNT_AT, { type: 'merge', body });
      },
    });
    await assert.rejects(explore(options), /two runs of one schedule differ/);
  });
});
