import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRegistry, expose } from '../../../src/metrics/registry.ts';
import { restClientMetrics } from '../../../src/metrics/rest-client-metrics.ts';

async function linesOf(report: (metrics: ReturnType<typeof restClientMetrics>) => void) {
  const registry = createRegistry();
  report(restClientMetrics(registry));
  return (await expose(registry)).text.split('\n');
}

function has(lines: readonly string[], line: string): void {
  assert.ok(lines.includes(line), `${line} is not in\n${lines.join('\n')}`);
}

test('counts and measures HTTP exchanges in the metrics of client-go', async () => {
  const lines = await linesOf((metrics) => {
    metrics.exchanged({
      verb: 'GET',
      host: 'h',
      code: '200',
      seconds: 0.2,
      requestBytes: 0,
      responseBytes: 300,
    });
    metrics.exchanged({ verb: 'GET', host: 'h', code: '<error>', seconds: 3, requestBytes: 0 });
    metrics.retried({ code: '429', verb: 'PUT', host: 'h' });
    metrics.throttled({ verb: 'GET', host: 'h', seconds: 0.01 });
    metrics.resolved({ host: 'h', seconds: 0.03 });
  });
  has(lines, 'rest_client_requests_total{code="200",method="GET",host="h"} 1');
  has(lines, 'rest_client_requests_total{code="<error>",method="GET",host="h"} 1');
  has(lines, 'rest_client_request_duration_seconds_bucket{le="0.25",verb="GET",host="h"} 1');
  has(lines, 'rest_client_request_duration_seconds_count{verb="GET",host="h"} 2');
  has(lines, 'rest_client_request_size_bytes_count{verb="GET",host="h"} 2');
  has(lines, 'rest_client_response_size_bytes_bucket{le="512",verb="GET",host="h"} 1');
  has(lines, 'rest_client_response_size_bytes_count{verb="GET",host="h"} 1');
  has(lines, 'rest_client_request_retries_total{code="429",verb="PUT",host="h"} 1');
  has(lines, 'rest_client_rate_limiter_duration_seconds_bucket{le="0.025",verb="GET",host="h"} 1');
  has(lines, 'rest_client_dns_resolution_duration_seconds_bucket{le="0.025",host="h"} 0');
  has(lines, 'rest_client_dns_resolution_duration_seconds_bucket{le="0.1",host="h"} 1');
});

test('counts calls of exec plugins and reports an infinite time to live without an expiry', async () => {
  const endless = await linesOf((metrics) =>
    metrics.execPluginCalled({ code: 3, status: 'plugin_execution_error' }),
  );
  has(
    endless,
    'rest_client_exec_plugin_call_total{code="3",call_status="plugin_execution_error"} 1',
  );
  has(endless, 'rest_client_exec_plugin_ttl_seconds +Inf');
  const expiring = await linesOf((metrics) => metrics.execPluginExpiry(Date.now() + 60_000));
  const ttl = Number(/ttl_seconds ([\d.]+)$/m.exec(expiring.join('\n'))?.[1]);
  assert.ok(ttl > 0 && ttl <= 60, String(ttl));
});
