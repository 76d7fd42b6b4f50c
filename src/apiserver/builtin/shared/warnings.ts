import { isWholeQuantity } from '../../../api/quantity.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { ipWarnings } from './addresses.ts';

export type Texts = Readonly<Record<string, string>>;

export const NODE_LABELS: Texts = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region':
    'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone':
    'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type':
    'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
  'app.kubernetes.io/created-by': 'deprecated since v1.9',
  'scheduler.alpha.kubernetes.io/preferAvoidPods':
    'deprecated since v1.22; use Taints and Tolerations instead',
  'node-role.kubernetes.io/master': 'use "node-role.kubernetes.io/control-plane" instead',
};

export const VOLUMES: Texts = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11, and disabled by default in v1.33+',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};

export function annotationWarnings(object: CheckedObject, texts: Texts): string[] {
  const annotations = object.in('metadata').in('annotations');
  return Object.entries(texts)
    .filter(([key]) => annotations.has(key))
    .map(([key, text]) => `${annotations.path}[${key}]: ${text}`);
}

export function nodeSelectorWarnings(selector: CheckedObject): string[] {
  const expressions = selector
    .items('nodeSelectorTerms')
    .flatMap((term) => term.items('matchExpressions'));
  return expressions.flatMap((expression) => nodeLabelWarnings(expression, 'key'));
}

/** The warning about the label of nodes in a field, if it is deprecated. */
export function nodeLabelWarnings(parent: CheckedObject, field: string): string[] {
  const key = parent.text(field);
  return Object.hasOwn(NODE_LABELS, key)
    ? [`${parent.at(field)}: ${key} is ${NODE_LABELS[key]}`]
    : [];
}

/** Warnings of the texts in a list. */
export function addressWarnings(
  holder: CheckedObject,
  list: string,
  warningsOf: (path: string, text: string) => string[],
): string[] {
  return holder
    .list(list)
    .flatMap((text, index) => warningsOf(`${holder.at(list)}[${index}]`, String(text)));
}

/** Warnings of the spec of a PersistentVolumeClaim. */
export function claimWarnings(spec: CheckedObject): string[] {
  const resources = spec.in('resources');
  return ['requests', 'limits'].flatMap((list) => byteWarnings(resources, list, 'storage'));
}

export function byteWarnings(resources: CheckedObject, list: string, name: string): string[] {
  const value = resources.in(list).text(name);
  if (isWholeQuantity(value)) return [];
  return [
    `${resources.at(list)}[${name}]: fractional byte value ${JSON.stringify(value)} is invalid, must be an integer`,
  ];
}

export function loadBalancerWarnings(object: CheckedObject): string[] {
  const ingresses = object.in('status').in('loadBalancer').items('ingress');
  return ingresses.flatMap((ingress) => ipWarnings(ingress.path, ingress.text('ip')));
}
