import { callService, isReady, objectController, requeueAfter, ServiceError } from 'crd-controller';
import { covers } from 'crd-controller/objects';
import * as s from 'crd-controller/schema';
import { exponentialLimiter } from 'crd-controller/workqueue';
import type { Controller, ControllerKit, DeepReadonly, Reconciled } from 'crd-controller';
import type { ServiceContext } from 'crd-controller';

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

export interface DnsRecordControllerOptions {
  /** URL of the service, with a final slash. */
  readonly service: string;
}

/** Keeps a record at the service for each DnsRecord. Its id there is the uid of the DnsRecord. */
export function dnsRecordController(
  kit: ControllerKit,
  options: DnsRecordControllerOptions,
): Controller {
  const urlOf = ({ metadata }: DeepReadonly<DnsRecord>) =>
    new URL(`records/${metadata.uid}`, options.service);
  return objectController(kit, kit.informers.for(DNS_RECORDS), {
    name: 'dns-record',
    fieldManager: 'dns-record-operator',
    // The first retry is after 1 s, because the service is shared.
    rateLimiter: exponentialLimiter({ initialMs: 1000, maxMs: 300_000, jitter: 0.1 }),
    reconcile: async (record, context) => {
      const outcome = requeueAfter(CHECK_PERIOD_MS, 'checks its record', { jitter: 0.1 });
      try {
        return { ...(await applyRecord(context, urlOf(record), record)), outcome };
      } catch (error) {
        if (!(error instanceof ServiceError && error.reason === 'ServiceRejected')) throw error;
        // The answers of this service have no secrets.
        const message = `the service answered ${error.status}: ${error.body}`;
        return { kind: 'stalled', reason: 'RecordRejected', message, outcome };
      }
    },
    finalizer: 'example.com/dns-record',
    cleanUp: async (record, context) => {
      await callService(context, 'DELETE', urlOf(record), { accept: [404] });
    },
  });
}

/** Changes the record at the service to the spec. */
async function applyRecord(
  context: ServiceContext,
  url: URL,
  object: DeepReadonly<DnsRecord>,
): Promise<Reconciled<DnsRecord>> {
  const { spec } = object;
  const message = `${spec.type} record ${spec.hostname} is at the service`;
  const synced = { kind: 'ready', reason: 'RecordSynced', message } as const;
  const response = await callService(context, 'GET', url, { accept: [404] });
  // The service may add fields, such as the ID.
  if (response.ok && covers(await response.json(), spec)) return synced;
  await callService(context, 'PUT', url, { body: spec });
  if (!isReady(object)) return synced;
  return { ...synced, event: { type: 'Warning', reason: 'DriftCorrected', repeats: true } };
}
