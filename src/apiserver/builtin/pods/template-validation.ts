import { listIn, textIn } from '../../../util/json-value.ts';
import type { LabelSelector, Requirement } from '../../../api/label-selector.ts';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../../api/label-selector.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validatePodSpec } from './pod-validation.ts';
import { textMapIn, validateTemplateMetadata } from './template-metadata.ts';
import { requireSameProfiles, validatePodAnnotations } from './profile-annotations.ts';
import { selectorInGo, validateLabelSelector } from '../shared/label-selector-validation.ts';

/** Reports what is wrong with the selector and the template of a workload whose Pods are restarted. */
export function validateTemplate(
  spec: CheckedObject,
  kind: 'DaemonSet' | 'Deployment' | 'ReplicaSet' | 'StatefulSet',
): void {
  const template = spec.in('template');
  const selector = spec.get('selector');
  const isUsable = !selector || validateSelector(selector, template.in('metadata'), kind);
  if (!selector) {
    if (kind !== 'DaemonSet') spec.required('selector');
    template.in('metadata').invalid('labels', NO_MATCH);
  }
  // As upstream, which validates the template of other kinds with its selector.
  if (isUsable || kind === 'DaemonSet') validatePodTemplate(template);
  if (isUsable || kind === 'DaemonSet' || kind === 'StatefulSet') {
    validateRestarted(template.in('spec'), kind === 'Deployment' ? 'ReplicaSet' : kind);
  }
}

/** Reports what the Pods of a workload cannot have that replaces those that end. */
export function validateRestarted(podSpec: CheckedObject, kind: string): void {
  podSpec.requireOneOf('restartPolicy', ['Always']);
  if (!podSpec.has('activeDeadlineSeconds')) return;
  const why = `activeDeadlineSeconds in ${kind} is not Supported`;
  podSpec.forbidden('activeDeadlineSeconds', why);
}

export const NO_MATCH = '`selector` does not match template `labels`';

/** Reports what is wrong with the metadata and the spec of a Pod template. */
export function validatePodTemplate(template: CheckedObject): void {
  validateTemplateMetadata(template);
  const spec = template.in('spec');
  validatePodSpec(spec);
  // The path of upstream.
  const annotations = template.as(template.in('metadata').value).in('annotations');
  validatePodAnnotations(annotations, spec);
  requireSameProfiles(annotations, spec, true);
  if (spec.list('ephemeralContainers').length > 0) {
    spec.forbidden('ephemeralContainers', 'ephemeral containers not allowed in pod template');
  }
}

/** @returns whether it is a selector */
function validateSelector(selector: CheckedObject, metadata: CheckedObject, kind: string): boolean {
  const matchLabels = textMapIn(selector.value, 'matchLabels');
  const expressions = selector.items('matchExpressions').map(({ value }) => value);
  if (Object.keys(matchLabels).length + expressions.length === 0) {
    const workload = kind === 'ReplicaSet' ? 'deployment' : kind.toLowerCase();
    selector.invalid('', `empty selector is invalid for ${workload}`, selector.value);
    return true;
  }
  const count = selector.errors.length;
  validateLabelSelector(selector);
  const isValid = selector.errors.length === count;
  const labels = textMapIn(metadata.value, 'labels');
  const requirements = selectorRequirements(matchLabels, expressions);
  if (!isValid || !requirements) {
    const detail = kind === 'StatefulSet' ? '' : 'invalid label selector';
    if (kind !== 'DaemonSet') selector.invalid('', detail, selectorInGo(selector));
  } else if (!matchesLabels(requirements, labels)) metadata.invalid('labels', NO_MATCH);
  return isValid && requirements !== undefined;
}

/** The selector as requirements; undefined if a key or a value of it is malformed. */
export function selectorRequirements(
  matchLabels: Readonly<Record<string, string>>,
  expressions: readonly Readonly<Record<string, unknown>>[],
): readonly Requirement[] | undefined {
  const matchExpressions = expressions.flatMap((expression) => {
    const operator = textIn(expression, 'operator');
    const values = listIn(expression, 'values').filter((value) => typeof value === 'string');
    return isOperator(operator) ? [{ key: textIn(expression, 'key'), operator, values }] : [];
  });
  try {
    return parseLabelSelector(formatLabelSelector({ matchLabels, matchExpressions }));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type Operator = NonNullable<LabelSelector['matchExpressions']>[number]['operator'];

const OPERATORS: ReadonlySet<string> = new Set<Operator>(['In', 'NotIn', 'Exists', 'DoesNotExist']);

function isOperator(text: string): text is Operator {
  return OPERATORS.has(text);
}
