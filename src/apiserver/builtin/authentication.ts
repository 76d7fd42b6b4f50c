import { timestamp } from '../../api/conditions.ts';
import type { User } from '../user.ts';
import type { ReviewContext, StoredObject } from '../resource-definition.ts';
import { badRequest } from '../status-error.ts';
import type { KindTraits } from './definition.ts';
import { listIn, objectIn, textIn } from './fields.ts';

/** Whom tokens are for, unless they say otherwise: the server itself. */
const AUDIENCE = 'https://kubernetes.default.svc';

export const TOKEN_REVIEW: KindTraits = {
  review: reviewToken,
};

/** `kubectl auth whoami` */
export const SELF_SUBJECT_REVIEW: KindTraits = {
  review: ({ apiVersion, kind }, { user, now }) => ({
    apiVersion,
    kind,
    metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: timestamp(now) },
    status: { userInfo: userInfo(user) },
  }),
};

function reviewToken(review: StoredObject, { access }: ReviewContext): StoredObject {
  const spec = objectIn(review, 'spec');
  const token = textIn(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const audiences = listIn(spec, 'audiences');
  const isForUs = audiences.length === 0 || audiences.includes(AUDIENCE);
  const user = isForUs ? access.userOf(token) : undefined;
  const status = user
    ? { authenticated: true, user: userInfo(user), audiences: [AUDIENCE] }
    : { user: {}, error: 'invalid bearer token' };
  return { ...review, status };
}

function userInfo({ name, uid, groups, extra = {} }: User): object {
  return {
    username: name,
    ...(uid && { uid }),
    groups,
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}
