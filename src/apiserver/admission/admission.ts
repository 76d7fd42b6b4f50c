import { objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { WebhookCaller } from '../objects/webhook-call.ts';
import { oncePerObject } from '../../util/memo.ts';
import type { Clock } from '../../util/clock.ts';
import type { Collection } from '../storage/object-store.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { forbiddenError } from '../objects/status-error.ts';
import type { AdmissionChain, Attributes } from './attributes.ts';
import {
  PolicyEnvironment,
  compileConditions,
  evaluateConditions,
} from '../../cel/policy-environment.ts';
import { equalJson } from '../../api/equal.ts';
import { chargeQuotas } from './resource-quotas.ts';
import { requireWithinLimits, withDefaultLimits } from './limit-ranges.ts';
import type { AdmissionContext, Match } from './matching.ts';
import { isExempt, matchOf, prepareVersions, webhookCriteria } from './matching.ts';
import type { PolicyFailure } from './policies.ts';
import { policyVariables, invocationsOf, prepareInvocation } from './policies.ts';
import { mutateByPolicy, requireMutated } from './mutating-policies.ts';
import type { MutationStep } from './mutation.ts';
import { mutateInOrder } from './mutation.ts';
import { isOfServiceAccounts, withServiceAccount } from './service-accounts.ts';
import { requireByPluginsOfKind, withPluginsOfKind } from './kind-plugins.ts';
import { isOfPodSecurity, requirePodSecurity } from './pod-security/pod-security.ts';
import { protectionOf, withProtection } from './storage-protection.ts';
import { validatePolicies } from './validating-policies.ts';
import type { Invocation } from './webhooks.ts';
import { callMutating, callValidating, webhooksOf } from './webhooks.ts';

const GROUP = 'admissionregistration.k8s.io';

export interface AdmissionDeps extends AdmissionContext {
  readonly client: WebhookCaller;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Whether the admission plugin ServiceAccount is enabled. */
  readonly serviceAccounts: boolean;
  /** Whether the admission plugin StorageObjectInUseProtection is enabled. */
  readonly storageProtection: boolean;
  /** Returns a new random UUID. */
  readonly uid: () => string;
}

type Hook = readonly [id: string, webhook: JsonObject];

/** The stored webhooks and policies of one type. */
class Configuration {
  readonly #webhooks: Collection;
  readonly #policies: Collection;
  readonly #bindings: Collection;

  constructor({ store }: AdmissionDeps, type: 'mutating' | 'validating') {
    const collection = (plural: string) => store.collection({ group: GROUP, plural });
    this.#webhooks = collection(`${type}webhookconfigurations`);
    this.#policies = collection(`${type}admissionpolicies`);
    this.#bindings = collection(`${type}admissionpolicybindings`);
  }

  get isEmpty(): boolean {
    return this.#webhooks.size === 0 && this.#bindings.size === 0;
  }

  hooks(): readonly Hook[] {
    return this.#webhooks.list().flatMap(webhooksOf);
  }

  invocations(attributes: Attributes, context: AdmissionContext): ReturnType<typeof invocationsOf> {
    if (this.#bindings.size === 0) return [];
    return invocationsOf(attributes, this.#policies.list(), this.#bindings.list(), context);
  }
}

/** A built-in plugin that changes objects. Upstream: `admission.MutationInterface`. */
interface MutatingPlugin {
  /** Whether it can change objects of a resource now. */
  readonly mutates: (definition: ResourceDefinition) => boolean;
  /** Returns the object with its changes; the same value if there are none. */
  readonly mutate: (
    attributes: Attributes,
  ) => StoredObject | undefined | Promise<StoredObject | undefined>;
}

/** A plugin that rejects objects. Upstream: `admission.ValidationInterface`. */
interface ValidatingPlugin {
  /** Whether it can reject writes of a resource now. */
  readonly validates: (definition: ResourceDefinition) => boolean;
  /** Throws or rejects with a `StatusError`. */
  readonly validate: (attributes: Attributes) => void | Promise<void>;
}

/**
 * Admission in upstream's order: built-in plugins, mutating policies and mutating webhooks change an object; then, after
 * its validation, the validating plugins.
 */
export class Admission implements AdmissionChain {
  readonly #deps: AdmissionDeps;
  readonly #mutating: Configuration;
  readonly #validating: Configuration;
  readonly #mutatingPlugins: readonly MutatingPlugin[];
  readonly #validatingPlugins: readonly ValidatingPlugin[];

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    this.#mutating = new Configuration(deps, 'mutating');
    this.#validating = new Configuration(deps, 'validating');
    const { store } = deps;
    const limitRanges = store.collection({ group: '', plural: 'limitranges' });
    const quotas = store.collection({ group: '', plural: 'resourcequotas' });
    const accounts = store.collection({ group: '', plural: 'serviceaccounts' });
    this.#mutatingPlugins = [
      {
        mutates: () => limitRanges.size > 0,
        mutate: (given) => withDefaultLimits(given, limitRanges.list(given.namespace)),
      },
      {
        mutates: (definition) => deps.serviceAccounts && isOfServiceAccounts(definition),
        mutate: (given) => withServiceAccount(given, { ...deps, accounts }),
      },
      {
        mutates: ({ hooks }) => hooks?.admit !== undefined,
        mutate: (given) => withPluginsOfKind(given, store),
      },
      {
        mutates: (definition) => deps.storageProtection && protectionOf(definition) !== undefined,
        mutate: (given) => withProtection(given.object, given),
      },
    ];
    this.#validatingPlugins = [
      {
        validates: () => limitRanges.size > 0,
        validate: (given) => requireWithinLimits(given, limitRanges.list(given.namespace)),
      },
      { validates: isOfPodSecurity, validate: (given) => requirePodSecurity(given, store) },
      {
        validates: ({ hooks }) => hooks?.requireAdmitted !== undefined,
        validate: (given) => requireByPluginsOfKind(given, store),
      },
      {
        validates: () => !this.#validating.isEmpty,
        validate: (given) => this.#validateByConfiguration(given),
      },
      {
        validates: () => quotas.size > 0,
        validate: (given) => chargeQuotas(given, quotas, deps.clock.now()),
      },
    ];
  }

  mutates(definition: ResourceDefinition): boolean {
    return (
      !this.#mutating.isEmpty || this.#mutatingPlugins.some(({ mutates }) => mutates(definition))
    );
  }

  validates(definition: ResourceDefinition): boolean {
    return this.#validatingPlugins.some(({ validates }) => validates(definition));
  }

  async mutate(given: Attributes): Promise<StoredObject | undefined> {
    if (isExempt(given)) return given.object;
    const plugins = (object: StoredObject | undefined) => this.#runPlugins({ ...given, object });
    if (this.#mutating.isEmpty) return plugins(given.object);
    const failures: PolicyFailure[] = [];
    const mutated = await mutateInOrder(given.object, plugins, (object) => [
      ...this.#policySteps({ ...given, object }, failures),
      ...this.#mutating.hooks().map((hook) => this.#hookStep(given, hook)),
    ]);
    requireMutated(given, failures);
    return mutated;
  }

  /** Returns the object with the changes of the built-in plugins; the same value if there are none. */
  async #runPlugins(given: Attributes): Promise<StoredObject | undefined> {
    let { object } = given;
    for (const { mutates, mutate } of this.#mutatingPlugins) {
      if (mutates(given.definition)) object = await mutate({ ...given, object });
    }
    return equalJson(object, given.object) ? given.object : object;
  }

  async validate(attributes: Attributes): Promise<void> {
    if (isExempt(attributes)) return;
    for (const { validates, validate } of this.#validatingPlugins) {
      if (validates(attributes.definition)) await validate(attributes);
    }
  }

  /** Runs the validating policies, then the validating webhooks. */
  async #validateByConfiguration(attributes: Attributes): Promise<void> {
    const invocations = this.#validating.invocations(attributes, this.#deps);
    for (const invocation of invocations) {
      if ('match' in invocation) await prepareInvocation(attributes, invocation, this.#deps);
    }
    validatePolicies(attributes, invocations, this.#deps);
    await this.#callWebhooks(attributes);
  }

  async admit(attributes: Attributes): Promise<void> {
    if (this.mutates(attributes.definition)) await this.mutate(attributes);
    await this.validate(attributes);
  }

  /** Returns the mutating policies that apply to the object, and a step that rejects the write if one failed. */
  #policySteps(attributes: Attributes, failures: PolicyFailure[]): readonly MutationStep[] {
    const invocations = this.#mutating.invocations(attributes, this.#deps);
    if (invocations.length === 0) return [];
    const steps = invocations.flatMap((invocation): readonly MutationStep[] => {
      if (!('match' in invocation)) {
        failures.push(invocation);
        return [];
      }
      const { policy, binding, param } = invocation;
      const { namespace, name } = param?.object.metadata ?? {};
      return [
        {
          id: `policy ${policy.metadata.name}/${binding.metadata.name}/${namespace}/${name}`,
          isReinvocable: textIn(objectIn(policy, 'spec'), 'reinvocationPolicy') === 'IfNeeded',
          run: async (object) => {
            const current = { ...attributes, object };
            await prepareInvocation(current, invocation, this.#deps);
            return mutateByPolicy(current, invocation, this.#deps, (message) =>
              failures.push({ policy, binding, message, reason: 'Invalid' }),
            );
          },
        },
      ];
    });
    const check: MutationStep = {
      id: 'check of policies',
      isReinvocable: false,
      run: async (object) => {
        requireMutated(attributes, failures);
        return object;
      },
    };
    return [...steps, check];
  }

  #hookStep(attributes: Attributes, hook: Hook): MutationStep {
    const [id, webhook] = hook;
    return {
      id: `webhook ${id}`,
      isReinvocable: textIn(webhook, 'reinvocationPolicy') === 'IfNeeded',
      run: async (object) => {
        const current = { ...attributes, object };
        const invocation = await this.#invocation(hook, current);
        return invocation && callMutating(this.#deps, current, invocation);
      },
    };
  }

  async #callWebhooks(attributes: Attributes): Promise<void> {
    const invocations: Invocation[] = [];
    for (const hook of this.#validating.hooks()) {
      const invocation = await this.#invocation(hook, attributes);
      if (invocation) invocations.push(invocation);
    }
    await callValidating(this.#deps, attributes, invocations);
  }

  async #invocation([id, webhook]: Hook, attributes: Attributes): Promise<Invocation | undefined> {
    const match = matchOf(attributes, webhookCriteria(webhook), this.#deps);
    if (!match) return undefined;
    const { object, oldObject, definition } = attributes;
    await prepareVersions(this.#deps.converter, [object, oldObject], definition, match);
    return this.#meetsConditions(webhook, attributes, match) ? { id, webhook, match } : undefined;
  }

  /** @throws {StatusError} 403 if a match condition fails and the webhook does not ignore failures */
  #meetsConditions(webhook: JsonObject, attributes: Attributes, match: Match): boolean {
    const conditions = conditionsOf(webhook);
    if (conditions.expressions.length === 0) return true;
    const applies = evaluateConditions(conditions, {
      ...policyVariables(attributes, match, this.#deps),
      namespaceObject: undefined,
    });
    if (typeof applies === 'boolean') return applies;
    if (textIn(webhook, 'failurePolicy') === 'Ignore') return false;
    throw forbiddenError(attributes.definition, attributes.name, applies.error);
  }
}

/** Stored configurations are immutable, so that their conditions are compiled once. */
const conditionsOf = oncePerObject((webhook: JsonObject) =>
  compileConditions(objectsIn(webhook, 'matchConditions'), new PolicyEnvironment(false)),
);
