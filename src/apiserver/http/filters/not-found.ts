import type { Registry } from '../../objects/registry.ts';
import { methodNotAllowed, noSuchPath } from '../../objects/status-error.ts';
import { textResponse } from '../response.ts';
import type { Filter } from './filter.ts';
import { isInBuiltinGroup } from './request-line.ts';

/** Answers requests that no other filter has answered: with a Status in built-in groups. No filter follows. */
export function withNotFound(registry: Registry): Filter {
  return async ({ request, target, record }) => {
    if (!isInBuiltinGroup(registry, target)) return textResponse(404, '404 page not found\n');
    throw record.info?.legacyWatch && request.method !== 'GET' ? methodNotAllowed() : noSuchPath();
  };
}
