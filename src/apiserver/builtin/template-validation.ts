import type { LabelSelector, Requirement } from '../../api/label-selector.ts';
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

/** Reports what is wrong with the selector and the template of a workload whose Pods are restarted. */
export function validateTemplate(
  spec: JsonObject,
  findings: Findings,
  kind: 'DaemonSet' | 'Deployment' | 'ReplicaSet' | 'StatefulSet',
): void {
  const selector = objectIn(spec, 'selector');
  const template = objectIn(spec, 'template') ?? {};
  if (!selector) {
    findings.required('spec.selector');
    const labels = objectIn(objectIn(template, 'metadata'), 'labels') ?? null;
    if (kind !== 'DaemonSet') {
      const why = '`selector` does not match template `labels`';
      findings.invalid('spec.template.metadata.labels', labels, why);
    }
  }
  if (selector) {
    validateSelector(selector, objectIn(template, 'metadata') ?? {}, findings, kind);
  }
  validatePodTemplate(template, 'spec.template', findings);
  const podSpec = objectIn(template, 'spec') ?? {};
  findings.requireOneOf(podSpec, 'restartPolicy', ['Always'], 'spec.template.spec');
  if (isSet(podSpec, 'activeDeadlineSeconds')) {
    findings.forbidden(
      'spec.template.spec.activeDeadlineSeconds',
      `activeDeadlineSeconds in ${kind === 'Deployment' ? 'ReplicaSet' : kind} is not Supported`,
    );
  }
}

/** Reports what is wrong with the metadata and the spec of a Pod template. */
export function validatePodTemplate(template: JsonObject, path: string, findings: Findings): void {
  validateTemplateMetadata(objectIn(template, 'metadata') ?? {}, path, findings);
  validatePodSpec(objectIn(template, 'spec') ?? {}, `${path}.spec`, findings);
}

function validateSelector(
  selector: JsonObject,
  metadata: JsonObject,
  findings: Findings,
  kind: string,
): void {
  const matchLabels = textsIn(selector, 'matchLabels');
  const expressions = objectsIn(selector, 'matchExpressions');
  if (Object.keys(matchLabels).length + expressions.length === 0) {
    const workload = kind === 'ReplicaSet' ? 'deployment' : kind.toLowerCase();
    findings.invalid('spec.selector', selector, `empty selector is invalid for ${workload}`);
    return;
  }
  const unknown = expressions.flatMap((expression, index) => {
    const operator = textIn(expression, 'operator');
    return isOperator(operator) ? [] : [{ operator, index }];
  });
  for (const { operator, index } of unknown) {
    findings.invalid(
      `spec.selector.matchExpressions[${index}].operator`,
      operator,
      'not a valid selector operator',
    );
  }
  const labels = textsIn(metadata, 'labels');
  const requirements = unknown.length > 0 ? undefined : requirementsOf(matchLabels, expressions);
  if (!requirements) findings.invalid('spec.selector', selector, 'invalid label selector');
  else if (!matchesLabels(requirements, labels)) {
    findings.invalid(
      'spec.template.metadata.labels',
      labels,
      '`selector` does not match template `labels`',
    );
  }
}

/** The selector as requirements; undefined if a key or a value of it is malformed. */
export function requirementsOf(
  matchLabels: Readonly<Record<string, string>>,
  expressions: readonly JsonObject[],
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

export type Operator = NonNullable<LabelSelector['matchExpressions']>[number]['operator'];

const OPERATORS: ReadonlySet<string> = new Set<Operator>(['In', 'NotIn', 'Exists', 'DoesNotExist']);

export function isOperator(text: string): text is Operator {
  return OPERATORS.has(text);
}

/** Labels and annotations of a template are held to the rules of an object's own. */
function validateTemplateMetadata(metadata: JsonObject, path: string, findings: Findings): void {
  const template: ObjectMeta = {
    name: 'template',
    uid: '',
    resourceVersion: '',
    creationTimestamp: '',
    labels: textsIn(metadata, 'labels'),
    annotations: textsIn(metadata, 'annotations'),
  };
  for (const error of validateMetadata(template, false, 'pathSegment')) {
    const field = error.field.replace(/^metadata\./, `${path}.`);
    findings.errors.push({ ...error, field });
  }
}

export function textsIn(parent: JsonObject, field: string): Record<string, string> {
  const texts = Object.entries(objectIn(parent, field) ?? {});
  return Object.fromEntries(
    texts.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
