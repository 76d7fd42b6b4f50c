import assert from 'node:assert/strict';
import { appendFileSync, writeFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { CUSTOM_RESOURCE_DEFINITIONS, LEASES } from '../../../src/api/builtin.ts';
import { ATS } from '../../../src/api/generated/at.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FOOS } from '../../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../../src/api/generated/web-app.ts';
import type { Resource } from '../../../src/api/resource.ts';
import type { Client } from '../../../src/client/client.ts';
import { Cluster } from '../../../src/cluster/cluster.ts';
import { atController } from '../../../src/controllers/at/controller.ts';
import { countController } from '../../../src/controllers/count/controller.ts';
import { fooController } from '../../../src/controllers/foo/controller.ts';
import { webAppController } from '../../../src/controllers/webapp/controller.ts';
import type { Controller } from '../../../src/manager/controller.ts';
import type { ControllerKit } from '../../../src/manager/controller-kit.ts';
import type { EventBroadcaster } from '../../../src/record/event-broadcaster.ts';
import type { EventRecorder } from '../../../src/record/event-recorder.ts';
import type { RecordingLine } from '../../../src/replay/format.ts';
import { replay } from '../../../src/replay/replay.ts';
import { describeReport, tellRecording } from '../../../src/replay/report.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { draftOf } from '../../support/kinds.ts';
import { linesOfFile, recordings, recordRun, syncsWith } from '../../support/recorded-run.ts';
import type { RecordedScene } from '../../support/recorded-run.ts';
import { crdOf } from '../../support/test-cluster.ts';

const CONTROLLERS: readonly ((kit: ControllerKit) => Controller)[] = [
  countController,
  fooController,
  (kit) => webAppController(kit),
  atController,
];
const AT = { namespace: 'default', name: 'x' };

/** Edits, deletions, and a change of the leader. */
async function act({ clock, client }: RecordedScene): Promise<void> {
  const pass = () => clock.advance(30_000);
  const create = (resource: Resource, spec: object) =>
    client.create(resource, draftOf(resource, AT, spec));
  const change = (resource: Resource, spec: object) =>
    client.patch(resource, AT, { type: 'merge', body: { spec } });
  await pass();
  await create(COUNTS, { name: 'nginx', count: 3 });
  await create(FOOS, { deploymentName: 'x-site', replicas: 2 });
  const schedule = new Date(clock.now() + 70_000).toISOString().replace(/\.\d+Z$/, 'Z');
  await create(ATS, { schedule, command: 'echo YAY' });
  await pass();
  await create(WEB_APPS, { version: '1.27', replicas: 2 });
  await change(COUNTS, { count: 1 });
  await pass();
  const lease = { namespace: 'default', name: 'recorded' };
  const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: 'other', renewTime, leaseDurationSeconds: 15 };
  await client.patch(LEASES, lease, { type: 'merge', body: { spec } });
  await change(FOOS, { replicas: 1 });
  await pass();
  await pass();
  await client.delete(COUNTS, AT);
  await client.delete(WEB_APPS, AT);
  await pass();
}

/** A kit with a mistake. */
type Mistake = (kit: ControllerKit) => ControllerKit;

/** Creates one Pod too many. */
const onePodTooMany: Mistake = (kit) => {
  const create: Client['create'] = async (resource, object, options) => {
    const created = await kit.client.create(resource, object, options);
    if (object.metadata.name === 'x-2') {
      const metadata = { ...object.metadata, name: 'x-3' };
      await kit.client.create(resource, { ...object, metadata }, options);
    }
    return created;
  };
  return { ...kit, client: { ...kit.client, create } };
};

/** Has another message in a condition of a Count. */
const wrongMessage: Mistake = (kit) => {
  const patch: Client['patch'] = (resource, at, given, options) => {
    if (resource.kind !== 'Count') return kit.client.patch(resource, at, given, options);
    const text = JSON.stringify(given).replaceAll('"message":"', '"message":"no ');
    return kit.client.patch(resource, at, JSON.parse(text) as typeof given, options);
  };
  return { ...kit, client: { ...kit.client, patch } };
};

/** Does not record that it deletes a Pod. */
const missingEvent: Mistake = (kit) => {
  const events = Object.create(kit.events) as EventBroadcaster;
  events.recorder = (component) => {
    const recorder = kit.events.recorder(component);
    const normal: EventRecorder['normal'] = (subject, reason, ...rest) =>
      reason === 'SuccessfulDelete'
        ? { attempted: () => Promise.resolve() }
        : recorder.normal(subject, reason, ...rest);
    return { ...recorder, normal };
  };
  return { ...kit, events };
};

const isRequest = (line: RecordingLine, text: RegExp) =>
  line.kind === 'request' && text.test(`${line.method} ${line.path} ${JSON.stringify(line.body)}`);

/** Mistakes, the lines of the syncs in which they act, and what the replay reports. */
const MISTAKES: readonly (readonly [
  title: string,
  mistake: Mistake,
  acts: (line: RecordingLine) => boolean,
  reported: RegExp,
])[] = [
  [
    'one Pod too many',
    onePodTooMany,
    (line) => isRequest(line, /^POST .*"name":"x-2"/),
    /^ {2}additional: create pods default\/x-3$/m,
  ],
  [
    'a wrong message in a condition',
    wrongMessage,
    (line) => isRequest(line, /^PATCH .*\/counts\/x\/status.*"message"/),
    /^ {2}different: patch counts\/status default\/x\n {4}\.status\.conditions\[\d\]\.message: recorded ".+", now "no .+"$/m,
  ],
  [
    'a missing event',
    missingEvent,
    (line) => line.kind === 'event' && line.event.reason === 'SuccessfulDelete',
    /^ {2}missing: event Normal SuccessfulDelete "Deleted pod: x-2" of Count default\/x$/m,
  ],
];

describe('A recording of all controllers', () => {
  const at = recordings();
  const file = at('all.ndjson');

  before(() => {
    const leaderElection = { identity: 'first', stepDown: true };
    return recordRun({ controllers: CONTROLLERS, leaderElection, file }, act, async (scene) => {
      const { client, clock, signal } = scene;
      for (const kind of [COUNTS, FOOS, WEB_APPS, ATS]) {
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crdOf(kind));
      }
      void new Cluster({ client, clock, log: silentLogger }).run(signal);
      await clock.advance(1000);
    });
  });

  it('is replayed by the same code without a difference', async () => {
    const terms = linesOfFile(file).filter((line) => line.startsWith('{"kind":"term"'));
    assert.equal(terms.length, 4);
    const report = await replay({ file, controllers: CONTROLLERS });
    assert.deepEqual(
      [...describeReport(report)],
      [`Replayed ${report.compared} syncs: no sync differs`],
    );
    assert.ok(report.compared > 30, `${report.compared} syncs`);
  });

  for (const [title, mistake, acts, reported] of MISTAKES) {
    it(`differs in the syncs in which ${title} acts`, async () => {
      const controllers = CONTROLLERS.map((build) => (kit: ControllerKit) => build(mistake(kit)));
      const report = await replay({ file, controllers });
      const expected = await syncsWith(file, acts);
      assert.notEqual(expected.length, 0);
      assert.deepEqual(
        report.differences.map(({ sync }) => sync),
        expected,
      );
      assert.match([...describeReport(report)].join('\n'), reported);
    });
  }

  it('can be cut off in its last line', async () => {
    const cut = at('cut.ndjson');
    const lines = linesOfFile(file);
    const end = lines.findLastIndex((line) => line.startsWith('{"kind":"end"'));
    writeFileSync(cut, `${lines.slice(0, end).join('\n')}\n${lines[end]?.slice(0, 30)}`);
    const report = await replay({ file: cut, controllers: CONTROLLERS });
    assert.deepEqual(report.differences, []);
    assert.ok(report.isCut);
    assert.deepEqual([...report.skipped], [['the recording does not have their ends', 1]]);
  });

  it('says which lines are unreadable or missing', async () => {
    const damaged = at('damaged.ndjson');
    writeFileSync(damaged, linesOfFile(file).join('\n'));
    appendFileSync(
      damaged,
      '\n{"kind":"set","ms":1}}\n{"kind":"gap","ms":1,"lines":2,"reason":"full"}\n',
    );
    const { missingLines } = await replay({ file: damaged, controllers: CONTROLLERS });
    assert.equal(missingLines, 3);
  });

  it('tells who did what, when', async () => {
    const story: string[] = [];
    for await (const line of tellRecording(file)) story.push(line);
    const text = story.join('\n');
    assert.match(
      text,
      /^2026-01-01T00:00:31\.000Z {2}program {7}sees the event of counts\S*: ADDED default\/x$/m,
    );
    assert.match(text, /^\S+ {2}count {9}creates pods default\/x-0: 201$/m);
    assert.equal(text.match(/acquires the Lease/g)?.length, 2);
  });
});
