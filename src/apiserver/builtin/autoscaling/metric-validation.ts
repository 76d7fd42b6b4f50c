import { typedText } from '../../../api/field-error.ts';
import { nameProblems } from '../../../api/object-names.ts';
import { compareQuantities } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateContainerResourceName } from '../pods/container-resources.ts';

/** The sources of a metric by its type, in the order in which upstream validates them. */
const SOURCES = {
  Object: 'object',
  External: 'external',
  Pods: 'pods',
  Resource: 'resource',
  ContainerResource: 'containerResource',
} as const;

const TYPES = Object.keys(SOURCES).sort();
const TARGETS = new Set(['Utilization', 'Value', 'AverageValue']);
const MAX_WINDOW_SECONDS = 3600;
const MAX_PERIOD_SECONDS = 1800;

/** Reports what is wrong with the object that is scaled, or that a metric describes. */
export function validateReference(reference: CheckedObject): void {
  for (const field of ['kind', 'name']) {
    reference.requireText(field);
    reference.requireFormat(field, 'pathSegment');
  }
  const version = reference.text('apiVersion');
  if (version.split('/').length > 2) {
    reference.invalid('apiVersion', `unexpected GroupVersion string: ${version}`);
  }
}

/** Reports what is wrong with one metric. */
export function validateMetric(metric: CheckedObject): void {
  const type = metric.text('type');
  if (type === '') metric.required('type', 'must specify a metric source type');
  if (!TYPES.includes(type)) metric.notSupported('type', TYPES, type);
  const present = Object.values(SOURCES).filter((field) => metric.get(field));
  const [first] = present;
  if (first !== undefined) validateSource(metric.in(first), first);
  const expected = Object.entries(SOURCES).find(([name]) => name === type)?.[1];
  if (expected !== undefined && !present.includes(expected)) {
    metric.required(expected, 'must populate information for the given metric source');
  }
  if (present.length === 1) return;
  for (const field of present) {
    if (field === expected) continue;
    metric.forbidden(field, 'must populate the given metric source only');
  }
}

type Source = (typeof SOURCES)[keyof typeof SOURCES];

function validateSource(source: CheckedObject, field: Source): void {
  if (field === 'object') validateReference(source.in('describedObject'));
  if (field === 'resource' || field === 'containerResource') validateResource(source, field);
  else {
    const metric = source.in('metric');
    const name = metric.text('name');
    if (name === '') metric.required('name', 'must specify a metric name');
    metric.problems('name', nameProblems(name, 'pathSegment'));
  }
  const target = source.in('target');
  validateTarget(target);
  const has = (each: string) => target.has(each);
  if (field === 'resource' || field === 'containerResource') {
    if (!has('averageUtilization') && !has('averageValue')) {
      const why = 'must set either a target raw value or a target utilization';
      target.required('averageUtilization', why);
    } else if (has('averageUtilization') && has('averageValue')) {
      const why = 'may not set both a target raw value and a target utilization';
      target.forbidden('averageValue', why);
    }
  } else if (!has('averageValue') && (field === 'pods' || !has('value'))) {
    target.required('averageValue', NO_TARGET[field]);
  } else if (field === 'external' && has('value') && has('averageValue')) {
    const why = 'may not set both a target value for metric and a per-pod target';
    target.forbidden('value', why);
  }
}

const NO_TARGET = {
  object: 'must set either a target value or averageValue',
  external: 'must set either a target value for metric or a per-pod target',
  pods: 'must specify a positive target averageValue',
};

function validateResource(source: CheckedObject, field: Source): void {
  const name = source.text('name');
  if (name === '') source.required('name', 'must specify a resource name');
  if (field !== 'containerResource') return;
  if (name !== '') validateContainerResourceName(source, 'name', name);
  if (source.text('container') === '') source.required('container', 'must specify a container');
  source.requireFormat('container', 'dns1123Label');
}

function validateTarget(target: CheckedObject): void {
  const type = target.text('type');
  if (type === '') target.required('type', 'must specify a metric target type');
  if (!TARGETS.has(type)) {
    const why = 'must be either Utilization, Value, or AverageValue';
    target.invalid('type', why, typedText(type));
  }
  for (const field of ['value', 'averageValue']) {
    const amount = target.text(field);
    if (amount !== '' && compareQuantities(amount, '0') <= 0) {
      target.invalid(field, 'must be positive');
    }
  }
  if ((target.number('averageUtilization') ?? 1) < 1) {
    target.invalid('averageUtilization', 'must be greater than 0');
  }
}

/** Reports what is wrong with the rules by which an autoscaler scales in one direction. */
export function validateScalingRules(rules: CheckedObject): void {
  const seconds = rules.number('stabilizationWindowSeconds') ?? 0;
  if (seconds < 0) {
    rules.invalid('stabilizationWindowSeconds', 'must be greater than or equal to zero');
  } else if (seconds > MAX_WINDOW_SECONDS) {
    const why = `must be less than or equal to ${MAX_WINDOW_SECONDS}`;
    rules.invalid('stabilizationWindowSeconds', why);
  }
  const selects = ['Disabled', 'Max', 'Min'];
  if (rules.has('selectPolicy') && !selects.includes(rules.text('selectPolicy'))) {
    rules.notSupported('selectPolicy', selects);
  }
  const policies = rules.items('policies');
  if (policies.length === 0) rules.required('policies', 'must specify at least one Policy');
  for (const policy of policies) {
    const types = ['Percent', 'Pods'];
    const type = policy.text('type');
    if (!types.includes(type)) policy.notSupported('type', types, type);
    for (const field of ['value', 'periodSeconds']) {
      const value = policy.number(field) ?? 0;
      if (value <= 0) policy.invalid(field, 'must be greater than zero', value);
      else if (field === 'periodSeconds' && value > MAX_PERIOD_SECONDS) {
        policy.invalid(field, `must be less than or equal to ${MAX_PERIOD_SECONDS}`);
      }
    }
  }
  const tolerance = rules.text('tolerance');
  if (tolerance.startsWith('-') && compareQuantities(tolerance, '0') < 0) {
    rules.invalid('tolerance', 'must be greater than or equal to 0');
  }
}
