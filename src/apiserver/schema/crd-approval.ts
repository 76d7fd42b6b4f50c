import type { FieldError } from './field-error.ts';
import { fieldError } from './field-error.ts';
import { objectAt, textAt } from './json-fields.ts';
import type { JsonObject } from './json-value.ts';

const ANNOTATION = 'api-approved.kubernetes.io';
const FIELD = `metadata.annotations[${ANNOTATION}]`;
const REFERENCE = 'see https://github.com/kubernetes/enhancements/pull/1111';

/**
 * Groups of the Kubernetes community need an annotation that says who approved their API. An update
 * that leaves the annotation as it was is let through.
 */
export function checkApproval(
  crd: Readonly<JsonObject>,
  previous: Readonly<JsonObject> | undefined,
): FieldError[] {
  if (!isProtected(textAt(objectAt(crd, 'spec'), 'group'))) return [];
  const approval = approvalOf(crd);
  if (previous && approvalOf(previous) === approval) return [];
  if (approval === '') {
    const detail = `protected groups must have approval annotation "${ANNOTATION}", ${REFERENCE}`;
    return [fieldError.required(FIELD, detail)];
  }
  if (approval.startsWith('unapproved') || isAbsoluteUrl(approval)) return [];
  const detail = `protected groups must have approval annotation "${ANNOTATION}" with either a URL or a reason starting with "unapproved", ${REFERENCE}`;
  return [fieldError.invalid(FIELD, approval, detail)];
}

function isProtected(group: string): boolean {
  return ['k8s.io', 'kubernetes.io'].some(
    (domain) => group === domain || group.endsWith(`.${domain}`),
  );
}

function approvalOf(crd: Readonly<JsonObject>): string {
  return textAt(objectAt(objectAt(crd, 'metadata'), 'annotations'), ANNOTATION);
}

function isAbsoluteUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).host !== '';
}
