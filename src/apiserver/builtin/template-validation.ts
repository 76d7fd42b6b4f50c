import type { LabelSelector } from '../../api/label-selector.ts';
import {
  formatLabelSelector,
  matchesLabels,
  parseLabelSelector,
} from '../../api/label-selector.ts';
import type { ObjectMeta } from '../../api/object.ts';
import { validateMetadata } from '../object-metadata.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { isSet, listIn, objectIn, objectsIn, textIn } from './fields.ts';
import type { Findings } from './findings.ts';
import { validatePodSpec } from './pod-validation.ts';

/** What is wrong with the selector and the template of a workload whose Pods run for ever. */
export function validateTemplate(spec: JsonObject, findings: Findings): void {
  const selector = objectIn(spec, 'selector');
  if (!selector) findings.required('spec.selector');
  const template = objectIn(spec, 'template') ?? {};
  const metadata = objectIn(template, 'metadata') ?? {};
  if (selector) validateSelector(selector, metadata, findings);
  validateTemplateMetadata(metadata, findings);
  const podSpec = objectIn(template, 'spec') ?? {};
  validatePodSpec(podSpec, 'spec.template.spec', findings);
  findings.requireOneOf(podSpec, 'restartPolicy', ['Always'], 'spec.template.spec');
  if (isSet(podSpec, 'activeDeadlineSeconds')) {
    findings.forbidden(
      'spec.template.spec.activeDeadlineSeconds',
      'activeDeadlineSeconds in ReplicaSet is not Supported',
    );
  }
}

function validateSelector(selector: JsonObject, metadata: JsonObject, findings: Findings): void {
  const matchLabels = textsIn(selector, 'matchLabels');
  const expressions = objectsIn(selector, 'matchExpressions');
  if (Object.keys(matchLabels).length + expressions.length === 0) {
    findings.invalid('spec.selector', selector, 'empty selector is invalid for deployment');
    return;
  }
  const labels = textsIn(metadata, 'labels');
  const requirements = requirementsOf({
    matchLabels,
    matchExpressions: expressions.map((expression) => ({
      key: textIn(expression, 'key'),
      operator: operatorOf(textIn(expression, 'operator')),
      values: listIn(expression, 'values').filter((value) => typeof value === 'string'),
    })),
  });
  if (!requirements) findings.invalid('spec.selector', selector, 'invalid label selector');
  else if (!matchesLabels(requirements, labels)) {
    findings.invalid(
      'spec.template.metadata.labels',
      labels,
      '`selector` does not match template `labels`',
    );
  }
}

function requirementsOf(
  selector: LabelSelector,
): ReturnType<typeof parseLabelSelector> | undefined {
  try {
    return parseLabelSelector(formatLabelSelector(selector));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type Operator = NonNullable<LabelSelector['matchExpressions']>[number]['operator'];

/** Anything else was refused with the structure. */
function operatorOf(text: string): Operator {
  return text === 'NotIn' || text === 'Exists' || text === 'DoesNotExist' ? text : 'In';
}

/** Labels and annotations of a template are held to the rules of an object's own. */
function validateTemplateMetadata(metadata: JsonObject, findings: Findings): void {
  const template: ObjectMeta = {
    name: 'template',
    uid: '',
    resourceVersion: '',
    creationTimestamp: '',
    labels: textsIn(metadata, 'labels'),
    annotations: textsIn(metadata, 'annotations'),
  };
  for (const error of validateMetadata(template, false, 'pathSegment')) {
    const field = error.field.replace(/^metadata\./, 'spec.template.');
    findings.errors.push({ ...error, field });
  }
}

function textsIn(parent: JsonObject, field: string): Record<string, string> {
  const texts = Object.entries(objectIn(parent, field) ?? {});
  return Object.fromEntries(
    texts.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
