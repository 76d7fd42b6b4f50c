import { isReady, objectController, predicates, requeueAfter } from 'crd-controller';
import { covers } from 'crd-controller/objects';
import * as s from 'crd-controller/schema';
import { exponentialLimiter } from 'crd-controller/workqueue';
import type { Controller, ControllerKit, DeepReadonly, Reconciled } from 'crd-controller';
import { RecordService, ServiceError } from './record-service.ts';

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
  status: s.status(),
  columns: [{ name: 'Hostname', type: 'string', jsonPath: '.spec.hostname' }],
});

export type DnsRecord = s.Infer<typeof DNS_RECORDS>;

type Spec = DnsRecord['spec'];

export interface DnsRecordControllerOptions {
  /** URL of the service, with a final slash. */
  readonly service: string;
  /** @default the global `fetch` */
  readonly fetch?: typeof fetch | undefined;
}

/** Keeps a record at the service for each DnsRecord. Its id there is the uid of the DnsRecord. */
export function dnsRecordController(
  kit: ControllerKit,
  options: DnsRecordControllerOptions,
): Controller {
  const service = new RecordService<Spec>(options.service, kit.clock, options.fetch);
  return objectController(kit, kit.informers.for(DNS_RECORDS), {
    name: 'dns-record',
    fieldManager: 'dns-record-operator',
    // The first retry is after 1 s, because the service is shared.
    rateLimiter: exponentialLimiter({ initialMs: 1000, maxMs: 300_000, jitter: 0.1 }),
    // A write of the status does not start a sync, which would retry a failed key before its delay.
    predicates: [predicates.generationChanged],
    reconcile: async (record, { signal }) => {
      const outcome = requeueAfter(CHECK_PERIOD_MS, 'checks its record', { jitter: 0.1 });
      try {
        return { ...(await applyRecord(service, record, signal)), outcome };
      } catch (error) {
        if (!(error instanceof ServiceError && error.isRejection)) throw error;
        const { reason, message } = error;
        return { kind: 'stalled', reason, message, outcome };
      }
    },
    finalizer: 'example.com/dns-record',
    cleanUp: async ({ metadata }, { signal }) => {
      await service.delete(metadata.uid, signal);
    },
  });
}

/** Changes the record at the service to the spec. */
async function applyRecord(
  service: RecordService<Spec>,
  object: DeepReadonly<DnsRecord>,
  signal: AbortSignal,
): Promise<Reconciled<DnsRecord>> {
  const { metadata, spec } = object;
  const message = `${spec.type} record ${spec.hostname} is at the service`;
  const synced = { kind: 'ready', reason: 'RecordSynced', message } as const;
  // The service may add fields, such as the ID.
  if (covers(await service.get(metadata.uid, signal), spec)) return synced;
  await service.put(metadata.uid, spec, signal);
  if (!isReady(object)) return synced;
  return { ...synced, event: { type: 'Warning', reason: 'DriftCorrected', repeats: true } };
}
