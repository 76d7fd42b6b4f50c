import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS } from '../../../src/api/builtin.ts';
import { HttpServer } from '../../../src/serving/http-server.ts';
import type { Clock } from '../../../src/util/clock.ts';
import { sleepOn } from '../../../src/util/clock.ts';
import { settle } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { createCertificateAuthority } from '../../../src/util/x509.ts';
import { ManagedCertificate } from '../../../src/webhook/certificates.ts';
import {
  accepts,
  AT,
  authoritiesIn,
  CertificateReplicas,
  CONFIGURATION,
  MINUTE_MS,
  OPTIONS,
} from './certificate-replicas.ts';

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const base64 = (text: string) => Buffer.from(text).toString('base64');

let cluster: CertificateReplicas;

describe('ManagedCertificate', () => {
  beforeEach(async () => {
    cluster = new CertificateReplicas();
    await cluster.configure();
  });

  afterEach(async () => {
    await cluster.end();
    assert.deepEqual(cluster.rejections, []);
  });

  /** Starts a leader and a standby, and waits until both are ready. */
  async function startTwo() {
    const leader = await cluster.start({ name: 'leader' });
    const standby = await cluster.start({ name: 'standby', leads: false });
    await cluster.pass(MINUTE_MS);
    assert.ok(leader.isTrusted && standby.isTrusted);
    return { leader, standby };
  }

  /** Asserts that all replicas serve the certificate of the Secret, and that clients accept it. */
  async function assertConsistent() {
    const [bundle = '', ...others] = await cluster.bundles();
    assert.deepEqual(others, []);
    const certificatePem = await cluster.text('tls.crt');
    const pair = { certificatePem, privateKeyPem: await cluster.text('tls.key') };
    for (const { served, isTrusted } of cluster.replicas) {
      assert.deepEqual(served, pair);
      assert.ok(isTrusted && accepts(bundle, served, cluster.wall.now()));
    }
  }

  it('is created once by replicas that start at the same time', async () => {
    const [a, b, c] = await Promise.all([
      cluster.start(),
      cluster.start({ leads: false }),
      cluster.start({ leads: false }),
    ]);
    await cluster.pass(2 * MINUTE_MS);
    await assertConsistent();
    assert.deepEqual(
      [a, b, c].map((replica) => replica.errors()),
      [[], [], []],
    );
    const posts = [a, b, c].flatMap(({ writes }) => writes.filter((one) => one === 'POST secrets'));
    assert.equal(posts.length, 3, 'the replicas did not race');
    const { type, data = {}, metadata } = await cluster.secret();
    assert.equal(type, 'kubernetes.io/tls');
    const annotations = Object.keys(metadata.annotations ?? {}).map((key) =>
      key.replace(/.*\//, ''),
    );
    assert.deepEqual(annotations.toSorted(), ['injected-authorities', 'webhook-certificates']);
    assert.deepEqual(Object.keys(data).toSorted(), ['ca.crt', 'ca.key', 'tls.crt', 'tls.key']);
    const paths = cluster.server.requests.recent.map(({ path }) => path);
    const managers = paths.flatMap(
      (path) => /\/secrets.*fieldManager=([\w-]+)/.exec(path)?.[1] ?? [],
    );
    assert.deepEqual(new Set(managers), new Set(['webhook-certificate']));
  });

  const touched = { type: 'merge', body: { metadata: { labels: { touched: 'yes' } } } } as const;
  for (const [what, change] of [
    ['after a conflict', () => cluster.client.patch(SECRETS, AT, touched)],
    ['that was deleted before a write', () => cluster.client.delete(SECRETS, AT)],
  ] as const) {
    it(`reads the Secret again ${what}, which is no error`, async () => {
      let isRacing = true;
      const handler: HttpHandler = async (request) => {
        if (isRacing && request.method === 'PUT') {
          isRacing = false;
          await change();
        }
        return cluster.server.handler(request);
      };
      const replica = await cluster.start({ handler });
      await cluster.pass(2 * MINUTE_MS);
      await assertConsistent();
      assert.deepEqual([isRacing, replica.errors()], [false, []]);
    });
  }

  it('logs that its namespace is missing, and waits for it', async () => {
    cluster.server.faults.failNext({ verb: 'create', resource: 'secrets' }, 404);
    const replica = await cluster.start();
    await cluster.pass(2 * MINUTE_MS);
    assert.equal(replica.errors().length, 1);
    await assertConsistent();
  });

  it('becomes ready when the CA bundles contain its authority', async () => {
    const standby = await cluster.start({ leads: false });
    await cluster.pass(2 * MINUTE_MS);
    const pair = await standby.certificate.load();
    assert.equal(standby.served, pair);
    assert.match(standby.certificate.readiness.check() ?? '', /do not contain the authority/);
    standby.lead();
    await cluster.pass(1000);
    assert.equal(standby.certificate.readiness.check(), undefined);
    assert.equal(standby.served, pair);
  });

  it('renews certificates and authority with overlap, without a write in between', async () => {
    const { leader, standby } = await startTwo();
    const first = authoritiesIn(await cluster.text('ca.crt'));
    const before = leader.writes.length + standby.writes.length;
    await cluster.pass(2 * MINUTE_MS);
    assert.equal(leader.writes.length + standby.writes.length, before);
    const { served } = standby;
    await cluster.pass(0.75 * MINUTE_MS);
    assert.equal(standby.served, served);
    await cluster.pass(MINUTE_MS / 2);
    assert.notEqual(standby.served, served, 'not renewed at two thirds of the validity');
    await cluster.pass(24 * MINUTE_MS);
    await assertConsistent();
    const [bundle = ''] = await cluster.bundles();
    assert.ok(!bundle.includes(first[0]?.toString() ?? ''), 'the first authority is still trusted');
    assert.deepEqual([leader.errors(), standby.errors()], [[], []]);
  });

  it('is accepted for a year with the default validity and an authority of 400 days', async () => {
    // The wall clock is fast, so that the year takes few hours of timers.
    const rate = 600;
    cluster = new CertificateReplicas(rate);
    await cluster.configure();
    const options = { validityMs: 90 * DAY_MS, authorityValidityMs: 400 * DAY_MS };
    const leader = await cluster.start({ options });
    await cluster.start({ options, leads: false });
    await cluster.pass(5 * MINUTE_MS);
    const [first = ''] = await cluster.bundles();
    await cluster.pass((380 * DAY_MS) / rate, HOUR_MS / 2);
    await assertConsistent();
    const [bundle = ''] = await cluster.bundles();
    assert.ok(authoritiesIn(bundle).length === 1 && bundle !== first);
    assert.ok(leader.writes.length < 30);
  });

  it('survives the deletion of the Secret, and then replaces the authority', async () => {
    const { standby } = await startTwo();
    const [before = ''] = await cluster.bundles();
    const pair = standby.served;
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(10_000, 1000);
    assert.equal(standby.served, pair);
    assert.equal(await cluster.text('tls.crt'), pair?.certificatePem);
    await cluster.pass(2 * MINUTE_MS);
    await assertConsistent();
    assert.notEqual(standby.served, pair);
    const [after = ''] = await cluster.bundles();
    assert.ok(after.endsWith(before) && authoritiesIn(after).length === 2);
    const added = after.slice(0, -before.length);
    await cluster.patchSecret({ 'ca.crt': base64(added) });
    await cluster.pass(10_000, 1000);
    assert.deepEqual(await cluster.bundles(), [added], 'an authority can be removed by hand');
    await assertConsistent();
  });

  // The first is a rounding error before the time, the second passes it between two readings of the clock.
  for (const earlyMs of [0.06, 0.08]) {
    it(`has a new authority in time if timers fire ${earlyMs} ms early`, async () => {
      const { wall } = cluster;
      let reads = 0;
      const clock: Clock = {
        now: () => wall.now(),
        monotonic: () => wall.monotonic() + 0.01 * reads++,
        after: (ms, callback) => wall.after(Math.max(0, ms - earlyMs), callback),
        sleep: (ms, signal) => sleepOn(clock, ms, signal),
      };
      const replica = await cluster.start({ clock });
      await cluster.pass(MINUTE_MS);
      const pair = replica.served;
      await cluster.client.delete(SECRETS, AT);
      await cluster.pass(MINUTE_MS);
      assert.notEqual(replica.served, pair);
      await assertConsistent();
    });
  }

  it('stops to trust an authority when its last certificate has expired', async () => {
    const { leader, standby } = await startTwo();
    const [before = ''] = await cluster.bundles();
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(25 * MINUTE_MS);
    const [later = ''] = await cluster.bundles();
    assert.ok(!later.includes(before), 'the old authority is still trusted');
    assert.deepEqual([leader.errors(), standby.errors()], [[], []]);
  });

  it('trusts a replaced authority until an hour after its last certificate has expired', async () => {
    const options = { validityMs: 2 * HOUR_MS, authorityValidityMs: 100 * HOUR_MS };
    await cluster.start({ options });
    await cluster.pass(MINUTE_MS);
    const isTrusted = async (pem: string) => (await cluster.bundles())[0]?.includes(pem);
    const replace = async () => {
      const [before = ''] = authoritiesIn((await cluster.bundles())[0] ?? '').map(String);
      await cluster.client.delete(SECRETS, AT);
      await cluster.pass(3 * MINUTE_MS);
      assert.ok(await isTrusted(before));
      return before;
    };
    const first = await replace();
    await cluster.pass(1.5 * HOUR_MS, HOUR_MS / 2);
    // Its last certificate is from two thirds of the validity: it expires after 3 h 21 min.
    const second = await replace();
    await cluster.pass(98 * MINUTE_MS, HOUR_MS / 2);
    assert.ok(await isTrusted(second), 'it is not trusted longer than the first');
    await cluster.pass(HOUR_MS, HOUR_MS / 2);
    assert.ok((await isTrusted(second)) && (await isTrusted(first)));
    await cluster.pass(HOUR_MS / 4);
    assert.ok(!(await isTrusted(second)) && !(await isTrusted(first)));
  });

  it('replaces invalid content of the Secret', async () => {
    await startTwo();
    const other = await createCertificateAuthority({ commonName: 'webhook-ca' });
    const names = ['ca.crt', 'ca.key', 'tls.crt', 'tls.key'];
    const contents: Record<string, string | null>[] = [
      ...names.flatMap((name) => [{ [name]: '' }, { [name]: base64('-----BEGIN') }]),
      { 'ca.key': base64(other.privateKeyPem) },
      { 'tls.key': base64(other.privateKeyPem) },
      { 'ca-next.key': base64(other.privateKeyPem) },
      { 'ca.crt': base64(other.certificatePem) },
      Object.fromEntries(names.map((name) => [name, ''])),
      Object.fromEntries(names.map((name) => [name, base64('{}')])),
    ];
    for (const content of contents) {
      await cluster.patchSecret(content);
      await cluster.pass(30_000, 15_000);
      await assertConsistent();
    }
  });

  it('recovers from invalid content at the start', async () => {
    const metadata = {
      ...AT,
      annotations: { 'crd-controller.mark8s.io/webhook-certificates': '' },
    };
    const data = { 'ca.crt': base64('x'), 'tls.crt': '', 'tls.key': base64('y') };
    await cluster.client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    await startTwo();
    await assertConsistent();
  });

  it('uses an empty Secret that a manifest created', async () => {
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { ...AT } };
    await cluster.client.create(SECRETS, { ...secret, data: { 'tls.crt': '' } });
    await startTwo();
    await assertConsistent();
  });

  it('serves a certificate that was replaced by hand after the CA bundles contain its authority', async () => {
    const { standby } = await startTwo();
    const pair = standby.served;
    const { clock } = cluster;
    const authority = await createCertificateAuthority({ commonName: 'my-ca', clock });
    const issued = await authority.issue({
      commonName: 'mine',
      dnsNames: OPTIONS.dnsNames,
      usages: 'server',
    });
    await cluster.patchSecret({
      'ca.crt': base64(authority.certificatePem),
      'ca.key': base64(authority.privateKeyPem),
      'tls.crt': base64(issued.certificatePem),
      'tls.key': base64(issued.privateKeyPem),
    });
    await cluster.pass(10_000, 1000);
    assert.equal(standby.served, pair);
    await cluster.pass(MINUTE_MS);
    assert.equal(standby.served?.certificatePem, issued.certificatePem);
    await assertConsistent();
  });

  it('does not overwrite a Secret of another program, and uses the name when it is free', async () => {
    const data = { password: base64('x') };
    const metadata = { ...AT };
    await cluster.client.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    const replica = await cluster.start();
    await cluster.pass(10 * MINUTE_MS);
    assert.match(replica.errors()[0] ?? '', /content of another program. Choose another Secret/);
    assert.match(replica.certificate.readiness.check() ?? '', /another program/);
    assert.deepEqual([(await cluster.secret()).data, replica.writes], [data, []]);
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(MINUTE_MS);
    await assertConsistent();
  });

  it('keeps serving when another program takes the Secret', async () => {
    const { standby } = await startTwo();
    const secret = await cluster.secret();
    const { annotations: _, ...metadata } = secret.metadata;
    const data = { ...secret.data, 'tls.crt': base64('x') };
    await cluster.client.update(SECRETS, { ...secret, metadata, data });
    const pair = standby.served;
    await cluster.pass(3 * MINUTE_MS);
    assert.ok(standby.isTrusted && standby.served === pair);
    assert.deepEqual((await cluster.secret()).data, data);
  });

  for (const minutes of [5, -5]) {
    it(`is accepted if the clock of a replica differs by ${minutes} minutes`, async () => {
      const options = { validityMs: 30 * MINUTE_MS, authorityValidityMs: 120 * MINUTE_MS };
      const skewed = await cluster.start({ options, offsetMs: minutes * MINUTE_MS });
      const other = await cluster.start({ options, leads: false });
      await cluster.pass(65 * MINUTE_MS, 5 * MINUTE_MS);
      await assertConsistent();
      assert.ok(skewed.writes.length + other.writes.length < 20);
    });
  }

  it('is accepted when the API server was unavailable at the renewal', async () => {
    const { leader, standby } = await startTwo();
    const [validTo, before] = [6 * MINUTE_MS, cluster.clock.monotonic()];
    await cluster.pass(3 * MINUTE_MS - before);
    leader.isOnline = standby.isOnline = false;
    await cluster.pass(validTo - 4 * MINUTE_MS);
    leader.isOnline = standby.isOnline = true;
    await cluster.pass(MINUTE_MS - 5000);
    await assertConsistent();
    await cluster.pass(10 * MINUTE_MS);
  });

  it('does not serve a certificate of a new authority before a leader has updated the CA bundles', async () => {
    const { leader, standby } = await startTwo();
    await leader.resign();
    const [before] = await cluster.bundles();
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(5 * MINUTE_MS);
    assert.deepEqual(await cluster.bundles(), [before]);
    assert.equal(authoritiesIn(await cluster.text('ca.crt')).length, 2);
    await leader.stop();
    const late = await cluster.start({ name: 'late', leads: false });
    await cluster.pass(MINUTE_MS);
    assert.ok(late.isTrusted);
    standby.lead();
    await cluster.pass(MINUTE_MS);
    await assertConsistent();
    assert.equal((await cluster.bundles())[0], await cluster.text('ca.crt'));
  });

  it('is accepted while several replicas write the CA bundles, of which one has an old Secret in its cache', async () => {
    const delay = { isOn: false };
    const delayed: HttpHandler = async (request) => {
      const response = await cluster.server.handler(request);
      if (!/\/secrets\?.*watch=/.test(request.path)) return response;
      const body = async function* () {
        for await (const chunk of response.body) {
          while (delay.isOn && !request.signal?.aborted) await cluster.clock.sleep(1000);
          yield chunk;
        }
      };
      return { ...response, body: body() };
    };
    const replicas = [await cluster.start(), await cluster.start({ handler: delayed })];
    await cluster.pass(MINUTE_MS);
    delay.isOn = true;
    await cluster.client.delete(SECRETS, AT);
    await cluster.pass(30_000, 5000);
    delay.isOn = false;
    await cluster.pass(1000);
    await assertConsistent();
    assert.deepEqual(
      replicas.map((replica) => replica.errors()),
      [[], []],
    );
    const patches = replicas.flatMap(({ writes }) => writes.filter((one) => one.startsWith('PAT')));
    assert.ok(patches.length < 5, patches.join());
  });

  it('adopts the names of replicas of another release until the next renewal', async () => {
    const old = await cluster.start({ options: { dnsNames: ['old.default.svc'] } });
    await cluster.pass(MINUTE_MS);
    const renamed = await cluster.start({ leads: false });
    await cluster.pass(2 * MINUTE_MS);
    const served = renamed.served?.certificatePem;
    assert.equal(old.served?.certificatePem, served);
    const { subjectAltName } = new X509Certificate(served ?? '');
    assert.equal(subjectAltName, 'DNS:webhook.default.svc, DNS:old.default.svc');
    assert.ok(old.writes.length + renamed.writes.length <= 5);
    assert.deepEqual(await cluster.bundles(), ['']);
  });

  it('is accepted in random schedules of restarts, outages, elections and changes of the Secret', async () => {
    for (const seed of [1]) {
      await cluster.end();
      cluster = new CertificateReplicas();
      await cluster.configure();
      await startTwo();
      const random = generator(seed);
      for (let step = 0; step < 15; step++) {
        await disrupt(random);
        await cluster.pass(random() * 3 * MINUTE_MS);
      }
      await cluster.pass(3 * MINUTE_MS);
      await assertConsistent();
      assert.deepEqual(cluster.rejections, [], `seed ${seed}`);
    }
  });

  /** Disrupts the replicas, and leaves one that leads. */
  async function disrupt(random: () => number): Promise<void> {
    const { replicas } = cluster;
    const one = replicas[Math.floor(random() * replicas.length)];
    const kind = Math.floor(random() * 6);
    if (!one) return;
    if (kind === 0) {
      // Less than the last third of the validity, in which certificates are renewed.
      one.isOnline = false;
      await cluster.pass(random() * MINUTE_MS);
      one.isOnline = true;
      await cluster.pass(MINUTE_MS);
    } else if (kind === 1 && replicas.length > 1) await one.stop();
    else if (kind === 2 && replicas.length < 3)
      await cluster.start({ name: `replica ${random()}`, leads: false });
    else if (kind === 3) {
      await cluster.client.delete(SECRETS, AT).catch(() => undefined);
    } else if (kind === 4) {
      await cluster.patchSecret({ 'tls.key': '', 'ca.key': null }).catch(() => undefined);
    } else {
      for (const replica of replicas) await replica.resign();
      one.lead();
    }
    if (!cluster.replicas.some(({ leads }) => leads)) cluster.replicas[0]?.lead();
  }

  it('never logs private keys, also if the API server quotes them', async () => {
    const quote: HttpHandler = async (request) => {
      if (request.method === 'GET') return cluster.server.handler(request);
      const message = `Secret is invalid: data: Invalid value: ${String(request.body)}`;
      const status = { kind: 'Status', status: 'Failure', reason: 'Invalid', code: 422, message };
      return {
        status: 422,
        headers: { 'content-type': 'application/json' },
        body: (async function* () {
          yield Buffer.from(JSON.stringify(status));
        })(),
      };
    };
    const replica = await cluster.start({ handler: quote, leads: false });
    await cluster.pass(MINUTE_MS);
    assert.equal(replica.errors().length, 1);
    const texts = replica.lines.lines.map(({ message, fields, error }) =>
      JSON.stringify([message, fields, String(error), error instanceof Error && error.stack]),
    );
    const problem = replica.certificate.readiness.check() ?? '';
    assert.match(problem, /cannot be written/);
    // The beginning of a key in PEM, and in base64.
    assert.doesNotMatch([...texts, problem].join('\n'), /PRIVATE KEY|LS0tLS1CRUdJTi/);
  });

  it('lets a server stop that waits for the certificate, and rejects load', async () => {
    const client = cluster.clientOver(() => Promise.reject(new Error('refused')));
    const certificate = new ManagedCertificate({ client, clock: cluster.clock }, OPTIONS);
    const server = new HttpServer(
      { log: silentLogger },
      { name: 'webhook', bindAddress: '127.0.0.1:0', routes: {}, tls: { certificate } },
    );
    const stop = new AbortController();
    const running = Promise.all([certificate.run(stop.signal), server.run(stop.signal)]);
    const loading = assert.rejects(certificate.load(), /Stopped before/);
    await settle();
    stop.abort();
    await running;
    await loading;
  });

  it('rejects options that cannot work', () => {
    const { client } = cluster;
    assert.throws(
      () => new ManagedCertificate({ client }, { ...OPTIONS, dnsNames: [] }),
      RangeError,
    );
    assert.throws(
      () =>
        new ManagedCertificate({ client }, { ...OPTIONS, authorityValidityMs: 24 * MINUTE_MS - 1 }),
      RangeError,
    );
  });

  it('adopts a configuration that was restored with an old CA bundle', async () => {
    await startTwo();
    const at = { name: CONFIGURATION };
    const old = await cluster.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, at);
    await cluster.pass(25 * MINUTE_MS);
    cluster.replicas.forEach((replica) => assert.ok(replica.isTrusted));
    await cluster.end();
    cluster.rejections.length = 0;
    const { webhooks = [] } = old;
    const body = { webhooks };
    await cluster.client.patch(VALIDATING_WEBHOOK_CONFIGURATIONS, at, { type: 'merge', body });
    const replica = await cluster.start();
    await cluster.pass(MINUTE_MS);
    cluster.rejections.length = 0;
    assert.ok(replica.isTrusted);
    await assertConsistent();
  });
});

/** Returns a linear congruential generator. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (1103515245 * state + 12345) % 2 ** 31;
    return state / 2 ** 31;
  };
}
