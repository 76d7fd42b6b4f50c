import type { ObjectMeta } from '../../../api/object.ts';
import { objectIn } from '../../../util/json-value.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { validateMetadata } from '../../objects/object-metadata.ts';

/**
 * Labels and annotations of a template are held to the rules of an object's own.
 *
 * @param at the path in errors; upstream leaves out `metadata` for Pods
 */
export function validateTemplateMetadata(
  { value, path, errors }: CheckedObject,
  at: string = path,
): void {
  const metadata = objectIn(value, 'metadata');
  const template: ObjectMeta = {
    name: 'template',
    uid: '',
    resourceVersion: '',
    creationTimestamp: '',
    labels: textMapIn(metadata, 'labels'),
    annotations: textMapIn(metadata, 'annotations'),
  };
  for (const error of validateMetadata(template, false, 'pathSegment')) {
    errors.push({ ...error, field: error.field.replace(/^metadata\./, `${at}.`) });
  }
}

/** Reports what is wrong with the metadata of a template of claims, which has only labels and annotations. */
export function validateClaimMetadata(template: CheckedObject): void {
  const metadata = template.in('metadata');
  validateTemplateMetadata(template, metadata.path);
  for (const field of OTHER_METADATA.filter((each) => metadata.has(each))) {
    const value = metadata.value[field];
    const isZero = value === '' || (field === 'generation' && value === 0);
    // As upstream spells it.
    if (!isZero) metadata.forbidden(field === 'uid' ? 'uID' : field, 'cannot be set');
  }
}

const OTHER_METADATA =
  'name generateName namespace selfLink uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds ownerReferences finalizers managedFields'.split(
    ' ',
  );

export function textMapIn(
  parent: Readonly<Record<string, unknown>> | undefined,
  field: string,
): Record<string, string> {
  const texts = Object.entries(objectIn(parent, field) ?? {});
  return Object.fromEntries(
    texts.filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
