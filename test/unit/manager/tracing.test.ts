import assert from 'node:assert/strict';
import { after, afterEach, describe, it } from 'node:test';
import * as opentelemetry from '@opentelemetry/api';
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-node';
import { CONFIG_MAPS, PODS } from '../../../src/api/builtin.ts';
import { ApiServer } from '../../../src/apiserver/api-server.ts';
import { HttpClient } from '../../../src/client/http-client.ts';
import { Controller } from '../../../src/manager/controller.ts';
import type { SyncHandler } from '../../../src/manager/controller-options.ts';
import { runControllers } from '../../../src/manager/run-controllers.ts';
import { FakeClock } from '../../../src/util/fake-clock.ts';
import type { HttpHandler } from '../../../src/util/http.ts';
import { done, requeueAfter } from '../../../src/workqueue/outcome.ts';

const exporter = new InMemorySpanExporter();
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });

describe('A traced controller', () => {
  provider.register();
  afterEach(() => exporter.reset());
  after(async () => {
    await provider.shutdown();
    for (const api of [opentelemetry.trace, opentelemetry.context, opentelemetry.propagation])
      api.disable();
  });

  /** Runs `sync` for one Pod; returns the finished spans. */
  async function traced(
    sync: SyncHandler,
    { isTraced = true, prepare = (_server: ApiServer): void => undefined } = {},
  ) {
    const clock = new FakeClock();
    const server = new ApiServer({ clock });
    const headers: (string | undefined)[] = [];
    const handler: HttpHandler = (request) => {
      if (/configmaps/.test(request.path)) headers.push(request.headers['traceparent']);
      return server.handler(request);
    };
    const client = new HttpClient({ handler, server: 'https://10.0.0.1:6443', clock });
    await client.create(PODS, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'default' },
      spec: { containers: [{ name: 'app', image: 'nginx' }] },
    });
    prepare(server);
    const stop = new AbortController();
    const running = runControllers(
      {
        client,
        clock,
        tracing: isTraced ? opentelemetry : undefined,
        controllers: (kit) => {
          const pods = kit.informers.for(PODS);
          return [new Controller(kit, { name: 'web', kind: 'Pod', sync }).for(pods)];
        },
      },
      stop.signal,
    );
    await clock.advance(5000);
    stop.abort();
    await clock.advance(1000);
    await running;
    return { spans: exporter.getFinishedSpans(), headers };
  }

  const at = { namespace: 'default', name: 'settings' };
  const idOf = (span: ReadableSpan) => span.spanContext().spanId;
  const named = (spans: readonly ReadableSpan[], name: string) => {
    const found = spans.filter((span) => span.name === name);
    assert.equal(found.length, 1, `${name} among ${spans.map((span) => span.name).join()}`);
    return found[0]!;
  };

  it('has a span for each sync, with its causes, wait and outcome', async () => {
    const { spans } = await traced(() => Promise.resolve(requeueAfter(60_000, 'the timer')));
    const { attributes, parentSpanContext, status, kind } = named(spans, 'sync web');
    const { 'reconcile.id': id, 'reconcile.queued_ms': queued, ...rest } = attributes;
    assert.match(String(id), /^[0-9a-f]{8}$/);
    assert.equal(typeof queued, 'number');
    assert.deepEqual(rest, {
      'k8s.object.kind': 'Pod',
      'k8s.object.name': 'web',
      'k8s.namespace.name': 'default',
      'reconcile.controller': 'web',
      'reconcile.causes': ['Pod default/web listed'],
      'reconcile.attempt': 1,
      'reconcile.delayed_ms': 0,
      'reconcile.result': 'requeueAfter',
      'reconcile.requeue_after_ms': 60_000,
      'reconcile.reason': 'the timer',
    });
    assert.deepEqual([parentSpanContext, status.code, kind], [undefined, 0, 0]);
  });

  it('has a child span for each request, and sends its context to the server', async () => {
    const { spans, headers } = await traced(async (_key, { client, signal }) => {
      const draft = { apiVersion: 'v1', kind: 'ConfigMap', metadata: at } as const;
      const map = await client.create(CONFIG_MAPS, draft, { signal });
      const body = { data: { a: 'b' } };
      await client.patch(CONFIG_MAPS, map.metadata, { type: 'merge', body });
      await client.list(CONFIG_MAPS, { namespace: 'default' });
      return done();
    });
    const sync = named(spans, 'sync web');
    const requests = ['POST', 'PATCH', 'GET'].map((method) => named(spans, `${method} configmaps`));
    for (const span of requests) {
      assert.equal(span.parentSpanContext?.spanId, idOf(sync));
      assert.equal(span.kind, opentelemetry.SpanKind.CLIENT);
    }
    assert.deepEqual(
      headers,
      requests.map((span) => `00-${sync.spanContext().traceId}-${idOf(span)}-01`),
    );
    assert.deepEqual(requests[0]?.attributes, {
      'http.request.method': 'POST',
      'url.full': 'https://10.0.0.1:6443/api/v1/namespaces/default/configmaps',
      'server.address': '10.0.0.1',
      'server.port': 6443,
      'http.response.status_code': 201,
    });
  });

  it('marks failed requests and syncs', async () => {
    let syncs = 0;
    const { spans } = await traced(async (_key, { client }) => {
      if (++syncs > 1) return done();
      await client.get(CONFIG_MAPS, at);
      return done();
    });
    const get = named(spans, 'GET configmaps');
    assert.equal(get.attributes['error.type'], '404');
    assert.equal(get.status.code, opentelemetry.SpanStatusCode.ERROR);
    const [failed, retried] = spans.filter(({ name }) => name === 'sync web');
    assert.equal(failed?.status.code, opentelemetry.SpanStatusCode.ERROR);
    assert.equal(failed.attributes['reconcile.result'], 'error');
    assert.match(String(failed.events[0]?.attributes?.['exception.message']), /not found/);
    assert.equal(retried?.attributes['reconcile.attempt'], 2);
    assert.notEqual(retried.spanContext().traceId, failed.spanContext().traceId);
  });

  it('has a span for each attempt of a request that is retried', async () => {
    const list: SyncHandler = async (_key, { client }) => {
      await client.list(CONFIG_MAPS, { namespace: 'default' });
      return done();
    };
    const { spans } = await traced(list, {
      prepare: ({ faults }) =>
        faults.failNext({ verb: 'list', resource: 'configmaps' }, 429, { retryAfterSeconds: 1 }),
    });
    const attempts = spans.filter(({ name }) => name === 'GET configmaps');
    assert.deepEqual(
      attempts.map(({ attributes }) => [
        attributes['http.response.status_code'],
        attributes['http.request.resend_count'],
      ]),
      [
        [429, undefined],
        [200, 1],
      ],
    );
  });

  it('is the context of spans that other libraries create during a sync', async () => {
    const tracer = opentelemetry.trace.getTracer('another');
    const { spans } = await traced(async () => {
      await Promise.resolve();
      tracer.startSpan('own').end();
      return done();
    });
    assert.equal(named(spans, 'own').parentSpanContext?.spanId, idOf(named(spans, 'sync web')));
  });

  it('sends no header and creates no span without the option', async () => {
    const { spans, headers } = await traced(
      async (_key, { client }) => {
        await client.list(CONFIG_MAPS, { namespace: 'default' });
        return done();
      },
      { isTraced: false },
    );
    assert.deepEqual([spans, headers], [[], [undefined]]);
  });
});
