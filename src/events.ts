/**
 * The event broadcaster, which writes Events with client-go's correlation.
 *
 * @public
 * @module
 */
export { EventBroadcaster } from './record/event-broadcaster.ts';
export type { EventBroadcasterOptions } from './record/event-broadcaster.ts';
export type { EventApiVersion } from './record/event-api.ts';
export type { EventCorrelatorOptions } from './record/event-correlator.ts';
export type { EventOptions, EventSubject, RecordResult } from './record/event-recorder.ts';
