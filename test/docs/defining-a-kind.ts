import { HttpClient, isApiError } from 'crd-controller';
import { CUSTOM_RESOURCE_DEFINITIONS } from 'crd-controller/kinds';
import * as s from 'crd-controller/schema';
import { ApiServer } from 'crd-controller/testing';

export const BACKUPS = s.customResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Backup',
  plural: 'backups',
  shortNames: ['bk'],
  categories: ['all'],
  description: 'Backup copies a volume on a schedule.',
  spec: s.object(
    {
      schedule: s.string({ description: 'Cron schedule.', minLength: 9, maxLength: 64 }),
      mode: s.enumeration(['Full', 'Incremental'], { default: 'Full' }),
      minimum: s.integer({ minimum: 0, default: 1 }),
      maximum: s.integer({ minimum: 0, default: 10 }),
      size: s.optional(s.quantity({ description: 'Limit of one copy.' })),
      targets: s.list(s.object({ name: s.string(), port: s.optional(s.intOrString()) }), {
        mapKeys: ['name'],
      }),
      labels: s.optional(s.map(s.string())),
    },
    { rules: [{ rule: 'self.minimum <= self.maximum', message: 'minimum exceeds maximum' }] },
  ),
  status: s.status({ lastRun: s.optional(s.dateTime()) }),
  columns: [{ name: 'Schedule', type: 'string', jsonPath: '.spec.schedule' }],
});

export type Backup = s.Infer<typeof BACKUPS>;

const client = new HttpClient({ handler: new ApiServer().handler, server: 'https://test' });
await client.create(CUSTOM_RESOURCE_DEFINITIONS, BACKUPS.definition);

const nightly = {
  apiVersion: 'example.com/v1',
  kind: 'Backup',
  metadata: { namespace: 'default', name: 'nightly' },
  spec: {
    schedule: '0 3 * * *',
    mode: 'Incremental' as const,
    minimum: 2,
    maximum: 5,
    targets: [{ name: 'a', port: 'https' }],
  },
};
const backup: Backup = await client.create(BACKUPS, nightly);
console.log(backup.spec.mode, backup.spec.targets[0]?.port); // prints: Incremental https

const wrong = { ...nightly, spec: { ...nightly.spec, minimum: 6 } };
try {
  await client.create(BACKUPS, wrong, { dryRun: true });
} catch (error) {
  console.log(isApiError(error) && error.message.endsWith('minimum exceeds maximum')); // prints: true
}
