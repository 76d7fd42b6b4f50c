import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { EVENTS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { EventBroadcaster } from '../../../src/record/event-broadcaster.ts';
import type { EventSubject } from '../../../src/record/event-recorder.ts';
import { FakeClock, settle } from '../../../src/util/fake-clock.ts';
import { recordingLogger } from '../../support/recording-logger.ts';

const MINUTE = 60_000;

describe('Events of events.k8s.io', () => {
  let clock: FakeClock;
  let server: ApiServer;
  let client: HttpClient;
  let stop: () => Promise<void>;
  const { log, lines } = recordingLogger();

  beforeEach(() => {
    clock = new FakeClock();
    server = new ApiServer({ clock });
    client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
    lines.length = 0;
  });
  afterEach(async () => {
    await stop();
    assert.deepEqual(
      lines.filter(({ level }) => level === 'error'),
      [],
    );
  });

  function start(host = 'pod-a', component = 'web-controller') {
    const abort = new AbortController();
    const apiVersion = 'events.k8s.io/v1';
    const broadcaster = new EventBroadcaster({ client, clock, log }, { host, apiVersion });
    const running = broadcaster.run(abort.signal);
    stop = async () => {
      abort.abort();
      await running;
    };
    return broadcaster.recorder(component);
  }

  function startRecording(host?: string) {
    const recorder = start(host);
    return async (message: string, version = '1') => {
      recorder.normal(subject('web', version), 'Synced', message);
      await settle();
    };
  }

  const subject = (name = 'web', resourceVersion = '1'): EventSubject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-of-${name}`,
      resourceVersion,
    },
  });

  /** The events as kubectl reads them. */
  const stored = async () => {
    const { items } = await client.list(EVENTS, { namespace: 'default' });
    return items;
  };
  const series = async () => (await stored()).map((event) => event.series?.count);
  const writes = () =>
    server.requests.recent.filter(
      ({ method, info }) => method !== 'GET' && info?.resource === 'events',
    ).length;

  it('have the fields of the group, and are events of the core group, too', async () => {
    start().warning(subject(), 'Failed', 'ä'.repeat(2000), {
      action: 'Scaling',
      related: subject('db'),
    });
    await settle();
    const [event] = await stored();
    assert.ok(event);
    const { type, reason, action, message, source, reportingComponent, reportingInstance } = event;
    assert.deepEqual(
      { type, reason, action, source, reportingComponent, reportingInstance },
      {
        type: 'Warning',
        reason: 'Failed',
        action: 'Scaling',
        source: {},
        reportingComponent: 'web-controller',
        reportingInstance: 'web-controller-pod-a',
      },
    );
    assert.deepEqual([event.involvedObject.name, event.related?.name], ['web', 'db']);
    assert.match(String(event.eventTime), /^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{6}Z$/);
    assert.equal(message, `${'ä'.repeat(510)}…`);
    assert.equal(event.count, undefined);
  });

  it('use the reason as the action by default', async () => {
    const record = startRecording();
    await record('fine');
    assert.equal((await stored())[0]?.action, 'Synced');
  });

  it('start a series with the second occurrence, and count further ones without a request', async () => {
    const record = startRecording();
    await record('fine');
    assert.deepEqual(await series(), [undefined]);
    for (let i = 0; i < 50; i++) await record('fine');
    assert.deepEqual(await series(), [2]);
    assert.equal(writes(), 2);
  });

  it('have the final count after 6 to 12 minutes without an occurrence', async () => {
    const record = startRecording();
    for (let i = 0; i < 5; i++) await record('fine');
    await clock.advance(12 * MINUTE);
    await settle();
    assert.deepEqual(await series(), [5]);
    await record('fine');
    assert.deepEqual(await series(), [6], 'the next occurrence is written at once');
    await clock.advance(60 * MINUTE);
    assert.equal(writes(), 4);
  });

  it('have the current count every 30 minutes while the series continues', async () => {
    const record = startRecording();
    for (let minute = 0; minute < 37; minute++) {
      await record('fine');
      await clock.advance(MINUTE);
    }
    await settle();
    const [count = 0] = await series();
    assert.ok(count >= 30, String(count));
    assert.equal(writes(), 3);
  });

  it('have the final count when the program stops, and the next program continues it', async () => {
    const record = startRecording('pod-a');
    for (let i = 0; i < 5; i++) await record('fine');
    await stop();
    assert.deepEqual(await series(), [5]);
    const next = startRecording('pod-b');
    await next('fine', '2');
    assert.deepEqual(await series(), [6]);
  });

  it('keep the note of the first combined event', async () => {
    const record = startRecording();
    for (let i = 0; i < 12; i++) await record(`message ${i}`);
    await stop();
    const combined = (await stored()).filter(({ message = '' }) => message.startsWith('(combined'));
    assert.deepEqual(
      combined.map(({ message, series: { count } = {} }) => [message, count]),
      [['(combined from similar events): message 9', 3]],
    );
  });

  for (const [component, controller] of [
    ['example.com/web', 'example.com/web'],
    ['Example.com/web', 'Example.com-web'],
    ['a.io/b/c', 'a.io-b-c'],
    ['/web', 'web'],
    ['_web app!', 'web-app'],
    ['!', 'Unknown'],
    ['x'.repeat(64), 'x'.repeat(63)],
  ] as const) {
    it(`of the component ${component} are of the controller ${controller}`, async () => {
      start('pod-a', component).normal(subject(), 'Synced', 'Synced');
      await settle();
      const [event] = await stored();
      assert.equal(event?.reportingComponent, controller);
    });
  }
});
