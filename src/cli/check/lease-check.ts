import { isApiError } from '../../api/api-error.ts';
import { LEASES } from '../../api/builtin.ts';
import type { Lease } from '../../api/builtin.ts';
import { objectKey } from '../../api/object-key.ts';
import type { Client } from '../../client/client.ts';
import { formatDuration } from '../../util/duration.ts';
import { errorText } from '../error-text.ts';
import { failed, ok, skipped, warning } from './row.ts';
import type { Row } from './row.ts';

/**
 * Who holds a Lease, and whether they renew it.
 *
 * @param now what the holder's clock shows, as far as is known
 */
export async function checkLease(
  client: Client,
  at: { readonly namespace: string; readonly name: string },
  now: () => number,
  signal: AbortSignal,
): Promise<Row> {
  const check = `Lease ${objectKey(at.namespace, at.name)}`;
  try {
    return judge(check, await client.get(LEASES, at, { signal }), now());
  } catch (error) {
    signal.throwIfAborted();
    if (isApiError(error, 'notFound')) return ok(check, 'not held yet');
    // The right that is missing has a row of its own.
    if (isApiError(error, 'forbidden')) return skipped(check, 'no permission to read it');
    return failed(check, errorText(error));
  }
}

function judge(check: string, { spec = {} }: Lease, nowMs: number): Row {
  const { holderIdentity: holder = '', acquireTime, renewTime, leaseDurationSeconds = 0 } = spec;
  if (holder === '') return ok(check, 'not held');
  const agoMs = nowMs - Date.parse(renewTime ?? '');
  const since = acquireTime === undefined ? '' : ` since ${acquireTime}`;
  const held = `held by ${JSON.stringify(holder)}${since}`;
  if (Number.isNaN(agoMs)) return warning(check, `${held}, without a renewal time`);
  const ago = formatDuration(1000 * Math.max(0, Math.round(agoMs / 1000)));
  if (agoMs <= leaseDurationSeconds * 1000) return ok(check, `${held}, renewed ${ago} ago`);
  return warning(
    check,
    `${held}, not renewed for ${ago}: another replica acquires it`,
    `If the holder was not stopped on purpose, find its Pod: kubectl get pods -A | grep ${podOf(holder)}`,
  );
}

/** Identities begin with the name of the Pod or machine. */
function podOf(holder: string): string {
  const [name = ''] = holder.split('_');
  return /^[\w.-]+$/.test(name) ? name : 'crd-controller';
}
