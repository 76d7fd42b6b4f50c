import type { Deployment } from '../api/builtin.ts';
import type { ExactField } from '../manager/owned-object.ts';

/**
 * Fields of a Deployment that stop its rollout or replace its program. Others may add what they want, such as environment
 * variables, volumes and annotations of a restart.
 */
export const EXACT_DEPLOYMENT_FIELDS: readonly ExactField<Deployment>[] = [
  'spec.paused',
  'spec.template.spec.containers',
  'spec.template.spec.containers.*.command',
  'spec.template.spec.containers.*.args',
];
