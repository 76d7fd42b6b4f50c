import type { ApiServerMetrics, RequestLabels } from '../../metrics/api-server-metrics.ts';
import type { HttpRequest } from '../../util/http.ts';
import { Memo, oncePerObject } from '../../util/memo.ts';
import type { Backend } from '../operations/call.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { hasSubresource, isLongRunning } from '../objects/subresources.ts';

/**
 * Records the start of a request to a served resource. The returned function records its response; only the first
 * call has an effect. Other paths are not recorded, because clients choose them.
 */
export function measureRequest(
  { registry, clock, metrics }: Pick<Backend, 'registry' | 'clock' | 'metrics'>,
  request: HttpRequest,
  info: RequestInfo,
): (code: number) => void {
  const definition = registry.find(info.group, info.version, info.resource);
  const { verb, subresource } = info;
  const isServed =
    subresource === undefined || (definition && hasSubresource(definition, subresource));
  if (!metrics || !definition || !isServed) return () => undefined;
  const labels = labelsOf(request, info, definition);
  const startedMs = clock.monotonic();
  const change = changeOf(metrics, labels, verb === 'watch' || isLongRunning(subresource));
  change(1);
  let isEnded = false;
  return (code) => {
    if (isEnded) return;
    isEnded = true;
    change(-1);
    const dryRun = info.query.getAll('dryRun').join();
    const seconds = (clock.monotonic() - startedMs) / 1000;
    metrics.answered(labels, ['', 'All'].includes(dryRun) ? dryRun : 'invalid', code, seconds);
  };
}

function changeOf(
  metrics: ApiServerMetrics,
  labels: RequestLabels,
  isLongRunning: boolean,
): (change: 1 | -1) => void {
  if (isLongRunning) return (change) => metrics.longRunning(labels, change);
  const isReadOnly = labels.verb === 'GET' || labels.verb === 'LIST';
  return (change) => metrics.inFlight(isReadOnly ? 'readOnly' : 'mutating', change);
}

const labelsByDefinition = oncePerObject(
  ({ group, version, plural: resource }: ResourceDefinition) =>
    new Memo(1000, (key): RequestLabels => {
      const [verb = '', scope = '', subresource = ''] = key.split(' ');
      return {
        verb,
        group,
        version,
        resource,
        subresource,
        scope: scope as RequestLabels['scope'],
      };
    }),
);

/** Returns the labels of a request: the same object for the same labels. */
function labelsOf(
  { method, headers }: HttpRequest,
  info: RequestInfo,
  definition: ResourceDefinition,
): RequestLabels {
  const { verb, subresource = '', namespace, name } = info;
  const scope =
    name !== undefined || verb === 'create'
      ? 'resource'
      : namespace === undefined
        ? 'cluster'
        : 'namespace';
  const shown = verbOf(method, verb, subresource, headers['content-type']);
  return labelsByDefinition(definition).get(`${shown} ${scope} ${subresource}`);
}

function verbOf(
  method: HttpRequest['method'],
  verb: RequestInfo['verb'],
  subresource: string,
  contentType: string = '',
): string {
  if (isLongRunning(subresource)) return 'CONNECT';
  if (verb === 'watch' || verb === 'list') return verb.toUpperCase();
  if (verb === 'patch' && contentType.startsWith('application/apply-patch')) return 'APPLY';
  return method;
}
