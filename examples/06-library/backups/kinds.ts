import * as s from 'crd-controller/schema';

const NAMES = { group: 'example.com', version: 'v1' };
const text = (description: string) => s.string({ description, minLength: 1, maxLength: 255 });
const command = (description: string) =>
  s.list(text('Word of the command.'), { description, minItems: 1, maxItems: 64 });
// Names of Jobs have a suffix.
const RULES = [{ rule: 'self.metadata.name.size() <= 50', message: 'name exceeds 50 characters' }];

export const BACKUPS = s.customResource({
  ...NAMES,
  kind: 'Backup',
  plural: 'backups',
  description: 'Backup saves data outside of the cluster on a schedule.',
  rules: RULES,
  spec: s.object({
    schedule: text('Cron schedule, in UTC.'),
    image: text('Image of both commands.'),
    backupCommand: command('Saves the data under the name in $RUN.'),
    restoreCommand: command('Restores the data that has the name in $RUN.'),
    settings: s.map(text('Value.'), { description: 'Environment of the commands.', default: {} }),
    keep: s.integer({ description: 'Number of ended Jobs to keep.', minimum: 1, default: 3 }),
  }),
  status: s.status({
    lastScheduled: s.optional(s.dateTime({ description: 'Scheduled time of the last run.' })),
    lastSuccessful: s.optional(text('Last run that succeeded.')),
  }),
  columns: [{ name: 'Last', type: 'string', jsonPath: '.status.lastSuccessful' }],
});

export const RESTORES = s.customResource({
  ...NAMES,
  kind: 'Restore',
  plural: 'restores',
  description: 'Restore runs the restore command of a Backup once.',
  rules: [...RULES, { rule: 'self.spec == oldSelf.spec', message: 'spec is immutable' }],
  spec: s.object({
    backup: text('Name of the Backup.'),
    run: s.optional(text('Run to restore; by default the last one that succeeded.')),
  }),
  status: s.status({ run: s.optional(text('Run that is restored.')) }),
  columns: [{ name: 'Run', type: 'string', jsonPath: '.status.run' }],
});

export type Backup = s.Infer<typeof BACKUPS>;
export type Restore = s.Infer<typeof RESTORES>;
