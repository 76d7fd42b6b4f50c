import { parseDuration } from '../../../util/go-duration.ts';
import type { HttpRequest, HttpResponse } from '../../../util/http.ts';
import { goQuote } from '../../../util/go-quote.ts';
import type { Registry } from '../../objects/registry.ts';
import { badRequest, methodNotAllowed } from '../../objects/status-error.ts';
import type { RequestInfo, Target } from '../../request/request-info.ts';
import { textResponse } from '../response.ts';
import type { Filter } from './filter.ts';

/** Rejects a malformed timeout, a path that ends too early, and HEAD where it is not allowed. */
export function withValidRequestLine(registry: Registry): Filter {
  return (filtered, next) => {
    const { request, target, record } = filtered;
    if (hasNothingAfterPrefix(target)) return Promise.resolve(requestInfoError(request));
    requireTimeout(target, record.info);
    if (request.isHead && !allowsHead(registry, target)) throw methodNotAllowed();
    return next(filtered);
  };
}

/** Whether a path ends after the prefix of a legacy path, which a kube-apiserver fails to interpret. */
function hasNothingAfterPrefix({ segments: [root, ...rest] }: Target): boolean {
  const [first = '', second] =
    root === 'api' ? rest.slice(1) : root === 'apis' ? rest.slice(2) : [];
  return ['proxy', 'watch'].includes(first) && second === undefined;
}

function requestInfoError({ path }: HttpRequest): HttpResponse {
  const problem = `unable to determine kind and namespace from url, ${path}`;
  const text = `${goQuote(path)}: failed to create RequestInfo: ${problem}`;
  return textResponse(500, `Internal Server Error: ${text}\n`);
}

/**
 * Checks the timeout of a request, which has no other effect here.
 *
 * @throws {StatusError} 400 if it is not a duration
 */
function requireTimeout({ query }: Target, info: RequestInfo | undefined): void {
  const timeout = query.get('timeout');
  if (!timeout || info?.verb === 'watch' || info?.subresource === 'log') return;
  if (parseDuration(timeout) !== undefined) return;
  const problem = /^[+-]?(?:\d+\.?\d*|\.\d+)$/.test(timeout)
    ? 'missing unit in duration'
    : 'invalid duration';
  throw badRequest(
    `invalid timeout specified in the request URL - time: ${problem} ${goQuote(timeout)}`,
  );
}

/** A kube-apiserver answers HEAD like GET, except at its own resources and its own discovery. */
function allowsHead(registry: Registry, target: Target): boolean {
  return target.segments[0] !== 'version' && !isInBuiltinGroup(registry, target);
}

/** Whether a path is in a built-in group, where a missing resource gets a Status. */
export function isInBuiltinGroup(registry: Registry, { segments }: Target): boolean {
  const [root, group = '', version] = segments;
  if (root === 'api') return true;
  if (root !== 'apis' || group === '' || version === undefined) return false;
  const versions = registry.group(group)?.versions ?? [];
  return versions.some(({ definitions }) => definitions.some(({ custom }) => !custom));
}
