import { Controller, done, HttpClient, runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { createRegistry, expose, metricsOf } from 'crd-controller/metrics';
import { ApiServer, FakeClock } from 'crd-controller/testing';
import type { ControllerKit } from 'crd-controller';

/** Counts the Namespaces that it has seen. */
function auditor(kit: ControllerKit): Controller {
  const audits = kit.customMetrics.counter({
    name: 'auditor_audits_total',
    help: 'Number of audits by result',
    labels: ['result'],
  });
  return new Controller(kit, {
    name: 'auditor',
    kind: 'Namespace',
    sync: async (key) => {
      audits.inc({ result: key.startsWith('kube-') ? 'system' : 'user' });
      return done();
    },
  }).for(kit.informers.for(NAMESPACES));
}

const clock = new FakeClock();
const handler = new ApiServer({ clock }).handler;
const client = new HttpClient({ handler, server: 'https://test', clock });
const registry = createRegistry();
const stop = new AbortController();
const running = runControllers(
  { client, clock, metrics: metricsOf(registry), controllers: (kit) => [auditor(kit)] },
  stop.signal,
);
await clock.advance(5000);
const { text } = await expose(registry);
console.log(text.includes('auditor_audits_total{result="user"} 1')); // prints: true
stop.abort();
await clock.advance(30_000);
await running;
