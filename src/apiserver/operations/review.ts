import type { ObjectMeta } from '../../api/object.ts';
import type { Answer, Call } from './call.ts';
import { withoutDuplicateOwners } from '../objects/object-metadata.ts';
import { withTrackedFields } from '../managedfields/field-manager.ts';
import { OBJECT_TYPES } from '../request/negotiation.ts';
import { decodeBody } from '../request/object-decoder.ts';
import { requireGoTypes } from '../request/go-types.ts';
import type { ApiObject, Review, StoredObject } from '../objects/resource-definition.ts';
import { isRecord } from '../../util/values.ts';
import { notAcceptable } from '../objects/status-error.ts';
import { placeObject } from './identity.ts';

/** `POST` of a review, such as a SubjectAccessReview: returns the object with its status, and stores nothing. */
export async function answerReview(call: Call, review: Review): Promise<Answer> {
  if (call.representation.form === 'table') throw notAcceptable(OBJECT_TYPES);
  const draft = withoutNulls(await decodeBody(call));
  requireGoTypes(call, draft);
  placeObject(call, draft);
  const { access, clock } = call.backend;
  const own = withoutDuplicateOwners(call, withoutSystemFields(call, draft), 'sent');
  const question = await withTrackedFields(call, own);
  const answer = review(question, { user: call.user, access, now: clock.now() });
  return { kind: 'object', code: 201, object: withoutEmptyMetadata(answer) };
}

/** Go decodes a null as a missing field. The decoder has bounded the nesting depth. */
function withoutNulls<T>(value: T): T {
  if (Array.isArray(value)) return value.map(withoutNulls) as T;
  if (!isRecord(value)) return value;
  const members = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(members.map(([key, member]) => [key, withoutNulls(member)])) as T;
}

/** The metadata that clients cannot set, and the namespace of cluster-scoped kinds. */
function withoutSystemFields({ definition }: Call, draft: ApiObject): ApiObject {
  const metadata: Partial<ApiObject['metadata']> = { ...draft.metadata };
  delete metadata.uid;
  delete metadata.creationTimestamp;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  if (!definition.namespaced) delete metadata.namespace;
  return { ...draft, metadata: metadata as ApiObject['metadata'] };
}

/** Objects that are not stored have no name and resourceVersion. */
function withoutEmptyMetadata(answer: StoredObject): StoredObject {
  const set = Object.entries(answer.metadata).filter(([, value]) => value !== '');
  return { ...answer, metadata: Object.fromEntries(set) as Partial<ObjectMeta> as ObjectMeta };
}
