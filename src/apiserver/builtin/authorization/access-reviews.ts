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

/** Whether a user may do an action in the namespace of the review. */
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
    return withDecision(review, subjectOf(spec), spec, context);
  },
};

/** Whether the sender may do an action, as for `kubectl auth can-i`. */
export const SELF_SUBJECT_ACCESS_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/selfsubjectaccessreviews',
  review: (review, context) => {
    const spec = specOf(review, (checked, spec) => {
      validateAttributes(spec);
      validateMetadataOf(checked);
    });
    return withDecision(review, context.user, spec, context);
  },
};

/** Whether a user may do an action. */
export const SUBJECT_ACCESS_REVIEW: BuiltinKind = {
  resource: 'authorization.k8s.io/subjectaccessreviews',
  review: (review, context) => {
    const spec = specOf(review, (checked, spec) => {
      validateAttributes(spec);
      validateSubject(spec);
      validateMetadataOf(checked);
    });
    return withDecision(review, subjectOf(spec), spec, context);
  },
};

const GROUP = 'authorization.k8s.io';

/**
 * Returns the valid spec of a review.
 *
 * @throws {StatusError} 422 if it is invalid
 */
function specOf(
  review: StoredObject,
  validate: (review: CheckedObject<StoredObject>, spec: CheckedObject) => void,
): JsonObject {
  const checked = new CheckedObject(review);
  untilTooMany(() => validate(checked, checked.in('spec')));
  // As upstream, errors of reviews do not name the kind.
  if (checked.errors.length > 0) throw invalidError({ group: GROUP, kind: '' }, '', checked.errors);
  return objectIn(review, 'spec') ?? {};
}

function withDecision(
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
  const attributes = objectIn(spec, 'resourceAttributes');
  return {
    kind: 'resource',
    verb: textIn(attributes, 'verb'),
    group: textIn(attributes, 'group'),
    resource: textIn(attributes, 'resource'),
    subresource: textIn(attributes, 'subresource'),
    namespace: textIn(attributes, 'namespace'),
    name: textIn(attributes, 'name'),
  };
}
