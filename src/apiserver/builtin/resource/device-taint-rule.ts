import { objectIn, textIn } from '../../../util/json-value.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { ageOf, column, columns, field } from '../../table/column.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import { requirePool, validateTaint } from './device-names.ts';
import { timeRuleTaint } from './taint-times.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';
import { validateConditions } from '../shared/status-validation.ts';
import { STATUS_ONLY } from '../shared/builtin-kind.ts';

export const DEVICE_TAINT_RULE: BuiltinKind = {
  resource: 'resource.k8s.io/devicetaintrules',
  ...STATUS_ONLY,
  tracksGeneration: true,
  unconditionalUpdate: false,
  hooks: {
    prepareForCreate: (rule, { now }) => timeRuleTaint(rule, undefined, now),
    prepareForUpdate: (rule, previous, { now }) => timeRuleTaint(rule, previous, now),
  },
  validate: (rule) => {
    const spec = rule.in('spec');
    const selector = spec.in('deviceSelector');
    if (selector.has('driver')) requireDriverName(selector, 'driver');
    if (selector.has('pool')) requirePool(selector, 'pool');
    if (selector.has('device')) {
      selector.problems('device', nameProblems(selector.text('device'), 'dns1123Label'));
    }
    validateTaint(spec.in('taint'));
  },
  validateUpdate: (rule, _, subresource) => {
    if (subresource !== 'status') return;
    validateConditions(rule.in('status'));
    rule.in('status').requireAtMost('conditions', 8);
  },
  columns: columns(
    field('Key', 'spec.taint.key'),
    field('Value', 'spec.taint.value'),
    field('Effect', 'spec.taint.effect'),
    column('TimeAdded', 'Time since the taint was added.', (rule, nowMs) => {
      const added = textIn(objectIn(objectIn(rule, 'spec'), 'taint'), 'timeAdded');
      return added === '' ? '' : ageOf(added, nowMs);
    }),
  ),
};
