import { createHash } from 'node:crypto';
import { joinKey } from './recorded-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** Longest name of an object in the API (RFC 1123 subdomain). */
const LONGEST_NAME = 253;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The name of an event: `<involved object>.<16 hex digits>`, the shape that client-go's have, or a
 * UUID if that would not be a valid name.
 *
 * The digits follow from what is said about which version of which object, by which component. A
 * process that says the same again after a crash thus names the same event, and the user sees one.
 */
export function eventName(event: Omit<RecordedEvent, 'metadata'>): string {
  const { source, involvedObject, type, reason, message } = event;
  const { apiVersion, kind, namespace, name, uid, resourceVersion, fieldPath } = involvedObject;
  const hash = createHash('sha256')
    .update(
      joinKey([
        source.component,
        apiVersion,
        kind,
        namespace,
        name,
        uid,
        resourceVersion,
        fieldPath,
        type,
        reason,
        message,
      ]),
    )
    .digest('hex');
  const readable = `${name}.${hash.slice(0, 16)}`;
  return readable.length <= LONGEST_NAME && SUBDOMAIN.test(readable) ? readable : uuidOf(hash);
}

/** Version 8: made of what its maker likes. */
function uuidOf(hash: string): string {
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
