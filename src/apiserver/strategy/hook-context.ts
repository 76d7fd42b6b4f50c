import type { Authorizer } from '../../api/policy-rule.ts';
import type { User } from '../../api/user.ts';
import type { Clock } from '../../util/clock.ts';
import type { Registry } from '../objects/registry.ts';
import type { HookContext } from '../objects/resource-definition.ts';
import type { ReceivedRequest } from '../request/received-request.ts';
import { isDryRun } from '../request/request-info.ts';
import type { ObjectStore } from '../storage/object-store.ts';

/** A request that creates or updates an object, for the strategy of its kind. */
export interface WriteRequest extends ReceivedRequest {
  /** User that sends the request. */
  readonly user: User;
  readonly backend: {
    readonly clock: Clock;
    readonly uid: () => string;
    readonly access: Authorizer;
    readonly store: ObjectStore;
    readonly registry: Registry;
  };
}

/** Returns the context of the hooks of a kind. */
export function hookContext({ backend, user, info, warnings }: WriteRequest): HookContext {
  const { clock, uid, access, store, registry } = backend;
  const { verb, subresource } = info;
  const list: HookContext['list'] = (resource) => store.collection(resource).list();
  const pluralOf: HookContext['pluralOf'] = (apiVersion, kind) =>
    registry.findKind(apiVersion, kind)?.plural;
  const facts = { now: clock.now(), user, verb, subresource, isDryRun: isDryRun({ info }) };
  const warn = (text: string) => void warnings.push(text);
  return { ...facts, uid, warn, access, list, pluralOf };
}
