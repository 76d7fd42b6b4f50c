import { Controller, done, Finalizer, predicates, requeueAfter } from 'crd-controller';
import { isReadyAt, StatusWriter } from 'crd-controller';
import { covers } from 'crd-controller/objects';
import * as s from 'crd-controller/schema';
import { exponentialLimiter } from 'crd-controller/workqueue';
import type { ControllerKit, DeepReadonly } from 'crd-controller';
import type { ReadinessEvent, StatusReport } from 'crd-controller/manager';
import { RecordService, ServiceError } from './record-service.ts';

/** Field manager and source of events. */
const COMPONENT = 'dns-record-operator';

/** Period after which a record is compared with the service again, because no event reports its changes. */
const CHECK_PERIOD_MS = 300_000;

export const DNS_RECORDS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'DnsRecord',
  plural: 'dnsrecords',
  description: 'DnsRecord is a record at a DNS service.',
  spec: s.object({
    hostname: s.string({ description: 'Name of the record.', minLength: 1, maxLength: 253 }),
    type: s.enumeration(['A', 'AAAA', 'CNAME', 'TXT'], { description: 'DNS type.', default: 'A' }),
    values: s.list(s.string({ description: 'Address, name or text.', maxLength: 255 }), {
      description: 'Values of the record.',
      minItems: 1,
      maxItems: 20,
    }),
    ttlSeconds: s.integer({ description: 'Time to live.', minimum: 30, default: 300 }),
  }),
  status: s.object({
    observedGeneration: s.optional(s.integer({ description: 'Last synced generation.' })),
    conditions: s.optional(s.conditions({ description: 'State of the record.' })),
  }),
  columns: [
    { name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  ],
});

export type DnsRecord = s.Infer<typeof DNS_RECORDS>;

type Spec = DnsRecord['spec'];

export interface DnsRecordControllerOptions {
  /** URL of the service, with a final slash. */
  readonly service: string;
  /** @default the global `fetch` */
  readonly fetch?: typeof fetch | undefined;
  /** @default all namespaces */
  readonly namespaces?: readonly string[] | undefined;
  readonly concurrency?: number | undefined;
}

/** Keeps a record at the service for each DnsRecord. Its id there is the uid of the DnsRecord. */
export function dnsRecordController(
  kit: ControllerKit,
  { namespaces, concurrency, ...options }: DnsRecordControllerOptions,
): Controller {
  const service = new RecordService<Spec>(options.service, kit.clock, options.fetch);
  const records = kit.informers.for(DNS_RECORDS, { namespaces });
  const finalizer = new Finalizer(DNS_RECORDS, 'example.com/dns-record', COMPONENT);
  const statuses = new StatusWriter(DNS_RECORDS, COMPONENT, kit);

  return new Controller(kit, {
    name: 'dns-record',
    kind: DNS_RECORDS.kind,
    concurrency,
    // The first retry is after 1 s, because the service is shared.
    rateLimiter: exponentialLimiter({ initialMs: 1000, maxMs: 300_000, jitter: 0.1 }),
    sync: async (key, context) => {
      const record = records.lister.get(key);
      if (!record) return done();
      try {
        return await finalizer.sync(record, context, {
          apply: async () => {
            await statuses.report(context, await applyRecord(service, record, context.signal));
            return requeueAfter(CHECK_PERIOD_MS, 'checks its record', { jitter: 0.1 });
          },
          cleanUp: async () => {
            await service.delete(record.metadata.uid, context.signal);
            return undefined;
          },
        });
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        await statuses.report(context, failureOf(record, error));
        return requeueAfter(CHECK_PERIOD_MS, 'its record was rejected', { jitter: 0.1 });
      }
    },
  }).for(records, {
    // A write of the status does not start a sync, which would retry a failed key before its delay.
    predicates: [predicates.generationChanged],
  });
}

/** Changes the record at the service to the spec. */
async function applyRecord(
  service: RecordService<Spec>,
  object: DeepReadonly<DnsRecord>,
  signal: AbortSignal,
): Promise<StatusReport<DnsRecord>> {
  const { metadata, spec, status } = object;
  const message = `${spec.type} record ${spec.hostname} is at the service`;
  const readiness = { kind: 'ready', reason: 'RecordSynced', message } as const;
  // The service may add fields, such as the ID.
  if (covers(await service.get(metadata.uid, signal), spec)) return { object, readiness };
  await service.put(metadata.uid, spec, signal);
  const isDrift = isReadyAt(status?.conditions, metadata.generation);
  const event: ReadinessEvent = isDrift
    ? { type: 'Warning', reason: 'DriftCorrected', repeats: true }
    : { type: 'Normal' };
  return { object, readiness, event };
}

/** Returns what is reported about a failed request. A rejected record is not retried with backoff. */
function failureOf(object: DeepReadonly<DnsRecord>, error: ServiceError): StatusReport<DnsRecord> {
  const { message, isRejection } = error;
  return {
    object,
    readiness: isRejection
      ? { kind: 'stalled', reason: 'RecordRejected', message }
      : { kind: 'reconciling', reason: 'ServiceUnavailable', message },
    event: { type: 'Warning', repeats: true },
    error: isRejection ? undefined : error,
  };
}
