import { listIn, objectIn, textIn } from '../../../util/json-value.ts';
import { API_AUDIENCE, userInfo } from '../../../api/user.ts';
import type { ReviewContext, StoredObject } from '../../objects/resource-definition.ts';
import { badRequest } from '../../objects/status-error.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

export const TOKEN_REVIEW: BuiltinKind = {
  resource: 'authentication.k8s.io/tokenreviews',
  review: reviewToken,
};

function reviewToken(review: StoredObject, { access }: ReviewContext): StoredObject {
  const spec = objectIn(review, 'spec');
  const token = textIn(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const named = listIn(spec, 'audiences').filter((audience) => typeof audience === 'string');
  const result = access.authenticate(token, named.length > 0 ? named : [API_AUDIENCE]);
  const status =
    typeof result === 'object'
      ? { authenticated: true, user: userInfo(result.user), audiences: result.audiences }
      : { user: {}, error: result };
  return { ...review, status };
}
