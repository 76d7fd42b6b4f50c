import type { JsonObject } from '../../../util/json-value.ts';
import { listIn, objectIn, textIn } from '../../../util/json-value.ts';
import type { Action } from '../../../api/policy-rule.ts';
import type { User } from '../../../api/user.ts';
import { CheckedObject, untilTooMany } from '../../objects/checked-object.ts';
import type { ReviewContext, StoredObject } from '../../objects/resource-definition.ts';
import { invalidError } from '../../objects/status-error.ts';
import {
  requireNoPath,
  validateAttributes,
  validateMetadataOf,
  validateSubject,
} from './access-review-validation.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

/** A SubjectAccessReview for users who have permissions in one namespace only. */
export const LOCAL_SUBJECT_ACCESS_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/localsubjectaccessreviews',
  review: (review, context) => {
    const spec = specOf(review, (checked, spec) => {
      validateAttributes(spec);
      validateSubject(spec);
      validateMetadataOf(checked, 'namespaced');
      requireNoPath(spec);
      const attributes = spec.get('resourceAttributes');
      const namespace = attributes?.text('namespace');
      if (namespace === review.metadata.namespace) return;
      attributes?.invalid('namespace', 'must match metadata.namespace', namespace);
    });
    return answered(review, subjectOf(spec), spec, context);
  },
};

/** May I do that? `kubectl auth can-i get pods` */
export const SELF_SUBJECT_ACCESS_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/selfsubjectaccessreviews',
  review: (review, context) => {
    const spec = specOf(review, (checked, spec) => {
      validateAttributes(spec);
      validateMetadataOf(checked);
    });
    return answered(review, context.user, spec, context);
  },
};

/** May this user do that? */
export const SUBJECT_ACCESS_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/subjectaccessreviews',
  review: (review, context) => {
    const spec = specOf(review, (checked, spec) => {
      validateAttributes(spec);
      validateSubject(spec);
      validateMetadataOf(checked);
    });
    return answered(review, subjectOf(spec), spec, context);
  },
};

const GROUP = 'authorization.k8s.io';

/**
 * The question's spec.
 *
 * @throws {StatusError} 422 if something is wrong with it
 */
function specOf(
  review: StoredObject,
  validate: (review: CheckedObject<StoredObject>, spec: CheckedObject) => void,
): JsonObject {
  const checked = new CheckedObject(review);
  untilTooMany(() => validate(checked, checked.in('spec')));
  // Reviews go without a kind here, on a real server too.
  if (checked.errors.length > 0) throw invalidError({ group: GROUP, kind: '' }, '', checked.errors);
  return objectIn(review, 'spec') ?? {};
}

function answered(
  review: StoredObject,
  user: User,
  spec: JsonObject,
  { access }: ReviewContext,
): StoredObject {
  const { allowed, reason } = access.decide(user, actionOf(spec));
  return { ...review, status: { allowed, ...(reason && { reason }) } };
}

function subjectOf(spec: JsonObject): User {
  const groups = listIn(spec, 'groups').filter((group) => typeof group === 'string');
  return { name: textIn(spec, 'user'), groups };
}

function actionOf(spec: JsonObject): Action {
  const path = objectIn(spec, 'nonResourceAttributes');
  if (path) return { kind: 'path', verb: textIn(path, 'verb'), path: textIn(path, 'path') };
  const asked = objectIn(spec, 'resourceAttributes');
  return {
    kind: 'resource',
    verb: textIn(asked, 'verb'),
    group: textIn(asked, 'group'),
    resource: textIn(asked, 'resource'),
    subresource: textIn(asked, 'subresource'),
    namespace: textIn(asked, 'namespace'),
    name: textIn(asked, 'name'),
  };
}
