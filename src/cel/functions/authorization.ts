import { nameProblems } from '../../api/object-names.ts';
import type { Action, Authorizer, Decision } from '../../api/policy-rule.ts';
import type { User } from '../../api/user.ts';
import type { Overload } from '../values/overload.ts';
import { instanceOf, member, stringParameter } from '../values/overload.ts';
import type { CelType } from '../values/type.ts';
import { BOOL, STRING } from '../values/type.ts';
import type { Dictionary, Result, Value } from '../values/value.ts';
import { EvaluationError, Opaque } from '../values/value.ts';

type ResourceAction = Extract<Action, { readonly kind: 'resource' }>;

const PREFIX = 'kubernetes.authorization';
const PATH_CHECK: CelType = { kind: 'opaque', name: `${PREFIX}.PathCheck` };
const GROUP_CHECK: CelType = { kind: 'opaque', name: `${PREFIX}.GroupCheck` };
const RESOURCE_CHECK: CelType = { kind: 'opaque', name: `${PREFIX}.ResourceCheck` };
const DECISION: CelType = { kind: 'opaque', name: `${PREFIX}.Decision` };

export const AUTHORIZER: CelType = {
  kind: 'object',
  name: `${PREFIX}.Authorizer`,
  fields: new Map([['requestResource', RESOURCE_CHECK]]),
};

/** Cost of one authorization, as upstream: an expression can afford two of them. */
const CHECK = { cost: () => 350_000 };

/** The user of an authorization, and the authorizer. */
interface Subject {
  readonly access: Pick<Authorizer, 'decide'>;
  readonly user: User;
}

export class AuthorizerValue extends Opaque implements Dictionary {
  readonly kind = 'dictionary';
  readonly type = AUTHORIZER;
  readonly subject: Subject;
  readonly #requestResource: ResourceCheck;

  /** @param action the resource of the request */
  constructor(subject: Subject, action: Omit<ResourceAction, 'kind' | 'verb'>) {
    super();
    this.subject = subject;
    this.#requestResource = new ResourceCheck(subject, { ...NOTHING, ...action });
  }

  get identity(): string {
    return this.subject.user.name;
  }

  get(key: Value): Result | undefined {
    return key === 'requestResource' ? this.#requestResource : undefined;
  }

  keys(): Iterable<Value> {
    return [];
  }
}

/** An action without its verb. */
abstract class Check<A extends Action> extends Opaque {
  readonly subject: Subject;
  readonly action: A;

  constructor(subject: Subject, action: A) {
    super();
    this.subject = subject;
    this.action = action;
  }

  get identity(): string {
    return JSON.stringify([this.subject.user.name, this.action]);
  }
}

class PathCheck extends Check<Extract<Action, { readonly kind: 'path' }>> {
  readonly type = PATH_CHECK;
}

class GroupCheck extends Check<ResourceAction> {
  readonly type = GROUP_CHECK;
}

class ResourceCheck extends Check<ResourceAction> {
  readonly type = RESOURCE_CHECK;
}

class DecisionValue extends Opaque {
  readonly type = DECISION;
  readonly decision: Decision;

  constructor(decision: Decision) {
    super();
    this.decision = decision;
  }

  get identity(): string {
    return JSON.stringify(this.decision);
  }
}

const NOTHING: ResourceAction = {
  kind: 'resource',
  verb: '',
  group: '',
  resource: '',
  subresource: '',
  namespace: '',
  name: '',
};

/** Authorization checks of admission policies. Selectors are accepted, but RBAC does not depend on them. */
export function authorization(): Overload[] {
  const authorizer = instanceOf(AUTHORIZER, AuthorizerValue);
  const pathCheck = instanceOf(PATH_CHECK, PathCheck);
  const groupCheck = instanceOf(GROUP_CHECK, GroupCheck);
  const resourceCheck = instanceOf(RESOURCE_CHECK, ResourceCheck);
  const decision = instanceOf(DECISION, DecisionValue);
  /** Defines a method that sets one field of the action. */
  const setter = (name: string, set: (text: string) => Partial<ResourceAction>) =>
    member(name, [resourceCheck, stringParameter], RESOURCE_CHECK, ({ subject, action }, text) => {
      return new ResourceCheck(subject, { ...action, ...set(text) });
    });
  const decide = ({ subject, action }: Check<Action>, verb: string) =>
    new DecisionValue(subject.access.decide(subject.user, { ...action, verb }));
  return [
    member('path', [authorizer, stringParameter], PATH_CHECK, ({ subject }, path) => {
      if (path.trim() === '') return new EvaluationError('path must not be empty');
      return new PathCheck(subject, { kind: 'path', verb: '', path });
    }),
    member('group', [authorizer, stringParameter], GROUP_CHECK, ({ subject }, group) => {
      return new GroupCheck(subject, { ...NOTHING, group });
    }),
    member(
      'serviceAccount',
      [authorizer, stringParameter, stringParameter],
      AUTHORIZER,
      ({ subject }, namespace, name) => serviceAccount(subject, namespace, name),
    ),
    member(
      'resource',
      [groupCheck, stringParameter],
      RESOURCE_CHECK,
      ({ subject, action }, resource) => {
        if (resource.trim() === '') return new EvaluationError('resource must not be empty');
        return new ResourceCheck(subject, { ...action, resource });
      },
    ),
    setter('subresource', (subresource) => ({ subresource })),
    setter('namespace', (namespace) => ({ namespace })),
    setter('name', (name) => ({ name })),
    setter('fieldSelector', () => ({})),
    setter('labelSelector', () => ({})),
    member('check', [pathCheck, stringParameter], DECISION, decide, CHECK),
    member('check', [resourceCheck, stringParameter], DECISION, decide, CHECK),
    member('allowed', [decision], BOOL, (value) => value.decision.allowed),
    member('reason', [decision], STRING, (value) => value.decision.reason),
    member('errored', [decision], BOOL, () => false),
    member('error', [decision], STRING, () => ''),
  ];
}

function serviceAccount(subject: Subject, namespace: string, name: string): Result {
  if (nameProblems(name, 'dns1123Subdomain').length > 0) {
    return new EvaluationError('Invalid service account name');
  }
  if (nameProblems(namespace, 'dns1123Label').length > 0) {
    return new EvaluationError('Invalid service account namespace');
  }
  const user = {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`],
  };
  return new AuthorizerValue({ ...subject, user }, NOTHING);
}
