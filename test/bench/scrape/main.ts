import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Agent, get } from 'node:https';
import { ATS } from '../../../src/api/generated/at.ts';
import { COUNTS } from '../../../src/api/generated/count.ts';
import { FOOS } from '../../../src/api/generated/foo.ts';
import { WEB_APPS } from '../../../src/api/generated/web-app.ts';
import { PODS } from '../../../src/api/builtin.ts';
import { apiVersionOf } from '../../../src/api/resource.ts';
import type { Resource } from '../../../src/api/resource.ts';
import { HttpServer } from '../../../src/serving/http-server.ts';
import { selfSignedCertificate } from '../../../src/serving/serving-certificate.ts';
import { systemClock } from '../../../src/util/clock.ts';
import { Deferred } from '../../../src/util/deferred.ts';
import { silentLogger } from '../../../src/util/logger.ts';
import { ScrapedDaemons } from '../../support/scraped-daemons.ts';
import type { BenchmarkCall } from '../benchmark.ts';
import { Arguments } from '../support/arguments.ts';
import { spreadOf, textOf } from '../support/spread.ts';

/** Kinds that are created in equal numbers, with unique names. */
const KINDS: readonly (readonly [Resource, object])[] = [
  [COUNTS, { name: 'web', image: 'nginx', count: 1 }],
  [WEB_APPS, { version: '1', replicas: 1, image: 'nginx:1' }],
  [ATS, { schedule: '2030-01-01T00:00:00Z', command: 'true' }],
  [FOOS, { deploymentName: 'foo', replicas: 1 }],
  [PODS, { containers: [{ name: 'app', image: 'nginx' }] }],
];

/**
 * Measures the duration of a scrape, over TLS and a kept-alive connection as Prometheus uses, of a
 * daemon that has run all controllers, including the Pod count.
 *
 * `--objects=2000 --rounds=50`
 */
export async function main({ args, json }: BenchmarkCall): Promise<void> {
  const given = new Arguments(args);
  const objects = given.number('objects', 2000);
  const rounds = given.number('rounds', 50);
  given.end();

  const simulation = new ScrapedDaemons();
  await simulation.installAll();
  const { namespace } = simulation;
  const each = Math.round(objects / KINDS.length);
  for (let i = 0; i < each; i++) {
    for (const [resource, template] of KINDS) {
      const { kind } = resource;
      const metadata = { namespace, name: `bench-${kind.toLowerCase()}-${i}` };
      const spec = { ...template, ...(resource === FOOS && { deploymentName: `foo-${i}` }) };
      const draft = { apiVersion: apiVersionOf(resource), kind, metadata, spec };
      await simulation.client.create(resource, draft);
    }
  }
  simulation.startScraped('a');
  await simulation.pass(120_000);
  console.error(`${KINDS.length * each} objects; ${simulation.scrapes.length} scrapes so far`);

  const certificate = selfSignedCertificate({ clock: systemClock, dnsNames: [] });
  const listening = new Deferred<string>();
  const log = {
    ...silentLogger,
    v: () => log,
    info: (_: string, { address }: { address?: unknown } = {}) =>
      listening.resolve(String(address)),
  };
  const metrics = async () => {
    await simulation.scrape();
    return { contentType: 'text/plain', text: simulation.scrapes.pop()?.text ?? '' };
  };
  const server = new HttpServer(
    { log },
    { name: 'metrics', bindAddress: '127.0.0.1:0', routes: { metrics }, tls: { certificate } },
  );
  const stop = new AbortController();
  const running = server.run(stop.signal);
  const url = `https://${await listening.promise}/metrics`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
  const scrape = async () => {
    const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += String(chunk);
    return text;
  };
  const text = await scrape();
  const milliseconds: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    const before = performance.now();
    await scrape();
    milliseconds.push(performance.now() - before);
  }
  agent.destroy();
  stop.abort();
  await running;
  await simulation.end();

  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  const scrapeMs = spreadOf(milliseconds);
  if (json)
    console.log(
      JSON.stringify({ objects: KINDS.length * each, series, bytes: text.length, scrapeMs }),
    );
  else console.log(`${series} series, ${text.length} bytes, ${textOf(scrapeMs)} ms a scrape`);
}
