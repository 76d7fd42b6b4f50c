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
 * The digits are a hash of component, object, type, reason and message. Another process that emits the
 * same thus names the same event. The version of the object is not part of it: a repeated event is a
 * higher count of its first name, which a successor could not know otherwise.
 */
export function eventName(event: Omit<RecordedEvent, 'metadata'>): string {
  const { source, involvedObject, type, reason, message } = event;
  const { apiVersion, kind, namespace, name, uid, fieldPath } = involvedObject;
  const hash = createHash('sha256')
    .update(
      joinKey([
        source.component,
        apiVersion,
        kind,
        namespace,
        name,
        uid,
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
