import { timestamp } from '../../../api/conditions.ts';
import { userInfo } from '../../../api/user.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

/** `kubectl auth whoami` */
export const SELF_SUBJECT_REVIEW: BuiltinKind = {
  resource: 'authentication.k8s.io/selfsubjectreviews',
  review: ({ apiVersion, kind }, { user, now }) => ({
    apiVersion,
    kind,
    metadata: { name: '', uid: '', resourceVersion: '', creationTimestamp: timestamp(now) },
    status: { userInfo: userInfo(user) },
  }),
};
