import { isTrue } from '../request/request-info.ts';
import { fieldError } from '../../api/field-error.ts';
import type { FieldError } from '../../api/field-error.ts';
import { formatGoTime, parseGoTime } from '../../api/go-time.ts';
import { badRequest, invalidError } from '../objects/status-error.ts';

const KIND = { group: '', kind: 'PodLogOptions' };

/**
 * Returns the query of a request to a kubelet for a container's log.
 *
 * @param name of the Pod, for error messages
 * @throws {StatusError} 400 for malformed options, 422 for invalid values
 */
export function kubeletQuery(query: URLSearchParams, name: string): URLSearchParams {
  const numbers = {
    limitBytes: integer(query.get('limitBytes')),
    sinceSeconds: integer(query.get('sinceSeconds')),
    tailLines: integer(query.get('tailLines')),
  };
  const sinceTime = instant(query.get('sinceTime'));
  const errors: FieldError[] = [];
  const require = (field: keyof typeof numbers, least: number, detail: string) => {
    const value = numbers[field];
    if (value !== undefined && value < least) errors.push(fieldError.invalid(field, value, detail));
  };
  require('tailLines', 0, 'must be greater than or equal to 0');
  require('limitBytes', 1, 'must be greater than 0');
  if (numbers.sinceSeconds !== undefined && sinceTime !== undefined) {
    const detail = 'at most one of `sinceTime` or `sinceSeconds` may be specified';
    errors.push(fieldError.forbidden('[]', detail));
  } else {
    require('sinceSeconds', 1, 'must be greater than 0');
  }
  // Its feature gate is off by default.
  if (query.has('stream')) errors.push(fieldError.forbidden('stream', 'may not be specified'));
  if (errors.length > 0) throw invalidError(KIND, name, errors);

  const asked = new URLSearchParams();
  for (const flag of ['follow', 'previous', 'timestamps']) {
    if (isTrue(query.get(flag))) asked.set(flag, 'true');
  }
  for (const [field, value] of Object.entries({ ...numbers, sinceTime })) {
    if (value !== undefined) asked.set(field, String(value));
  }
  return asked;
}

function integer(text: string | null): number | undefined {
  if (text === null) return undefined;
  if (!/^[-+]?\d+$/.test(text)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  const value = BigInt(text.replace('+', ''));
  if (value !== BigInt.asIntN(64, value)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`);
  }
  return Number(value);
}

/** Returns the time without its fraction, as upstream passes it to the kubelet. */
function instant(text: string | null): string | undefined {
  if (!text) return undefined;
  const moment = parseGoTime(text, 'seconds');
  if (typeof moment === 'string') throw badRequest(moment);
  return formatGoTime(moment, 'seconds') ?? undefined;
}
