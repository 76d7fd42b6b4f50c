import * as opentelemetry from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import { Controller, done, HttpClient, runControllers } from 'crd-controller';
import { NAMESPACES } from 'crd-controller/kinds';
import { ApiServer, FakeClock } from 'crd-controller/testing';

// A program would send spans to a collector instead.
const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();

const clock = new FakeClock();
const server = new ApiServer({ clock });
const client = new HttpClient({ handler: server.handler, server: 'https://test', clock });
const stop = new AbortController();
const running = runControllers(
  {
    client,
    clock,
    tracing: opentelemetry,
    controllers: (kit) => {
      const namespaces = kit.informers.for(NAMESPACES);
      const labeller = new Controller(kit, {
        name: 'labeller',
        kind: 'Namespace',
        sync: async (key, { client, signal }) => {
          const namespace = namespaces.lister.get(key);
          if (!namespace || namespace.metadata.name !== 'default') return done();
          const body = { metadata: { labels: { team: 'a' } } };
          const patch = { type: 'merge', body } as const;
          await client.patch(NAMESPACES, namespace.metadata, patch, { signal });
          return done();
        },
      });
      return [labeller.for(namespaces)];
    },
  },
  stop.signal,
);
await clock.advance(1000);
stop.abort();
await clock.advance(1000);
await running;

const spans = exporter.getFinishedSpans();
const request = spans.find(({ name }) => name === 'PATCH namespaces');
const sync = spans.find((span) => span.spanContext().spanId === request?.parentSpanContext?.spanId);
console.log(request?.attributes['http.response.status_code']); // prints: 200
console.log(sync?.name, sync?.attributes['k8s.object.name']); // prints: sync labeller default
await provider.shutdown();
opentelemetry.trace.disable();
opentelemetry.context.disable();
opentelemetry.propagation.disable();
