import { toHex } from '../util/bytes.ts';
import { sha256 } from '../util/sha256.ts';
import { joinKey } from './recorded-event.ts';
import type { RecordedEvent } from './recorded-event.ts';

/** Maximum length of an object name (RFC 1123 subdomain). */
const LONGEST_NAME = 253;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/**
 * Returns the name of an event: `<involved object>.<16 hex digits>` as in client-go, or a UUID if that
 * is not a valid name.
 *
 * The digits are a hash of component, object, type, reason, message, action and related object. Another process that emits the
 * same event uses the same name. The resourceVersion of the object is not part of the hash, so that a
 * new process finds the event that a previous one has written, and increases its count.
 */
export function eventName(event: Omit<RecordedEvent, 'metadata'>): string {
  const { source, involvedObject, type, reason, message, action, related } = event;
  const { apiVersion, kind, namespace, name, uid, fieldPath } = involvedObject;
  const content = joinKey([
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
    ...(action || related ? [action, related?.uid, related?.name] : []),
  ]);
  const hash = toHex(sha256(content));
  const readable = `${name}.${hash.slice(0, 16)}`;
  return readable.length <= LONGEST_NAME && SUBDOMAIN.test(readable) ? readable : uuidOf(hash);
}

/** Formats a hash as a UUID of version 8 (custom content). */
function uuidOf(hash: string): string {
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-8${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
