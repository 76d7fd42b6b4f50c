import { isRecord } from '../util/values.ts';

/** `meta/v1` Status, the body of failed and of some successful responses. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: Record<string, unknown>;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code: number;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

/** Returns the valid members of the details of a Status. Its type is not checked, as it comes from the network. */
export function statusDetails(value: unknown): StatusDetails | undefined {
  if (!isRecord(value)) return undefined;
  const { causes, retryAfterSeconds: seconds } = value;
  return {
    ...texts(value, ['name', 'group', 'kind', 'uid']),
    ...(Array.isArray(causes) && {
      causes: causes.filter(isRecord).map((cause) => texts(cause, ['reason', 'message', 'field'])),
    }),
    ...(isInt32(seconds) && seconds >= 0 && { retryAfterSeconds: seconds }),
  };
}

function texts<K extends string>(
  value: Record<string, unknown>,
  keys: readonly K[],
): Partial<Record<K, string>> {
  const found: Partial<Record<K, string>> = {};
  for (const key of keys) {
    const text = value[key];
    if (typeof text === 'string') found[key] = text;
  }
  return found;
}

function isInt32(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
