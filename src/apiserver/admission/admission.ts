import type { MaybePromise } from '../../util/maybe-promise.ts';
import { whenReady } from '../../util/maybe-promise.ts';
import type { Clock } from '../../util/clock.ts';
import { objectsIn, textIn } from '../builtin/fields.ts';
import type { Collection } from '../object-store.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { JsonObject } from '../schema/json-value.ts';
import { forbidden } from '../status-error.ts';
import { admissionRequest } from './admission-request.ts';
import type { AdmissionChain, Attributes } from './attributes.ts';
import { convertedTo } from './conversion.ts';
import type { Conditions } from './expressions.ts';
import { Environment, compileConditions, evaluateConditions } from './expressions.ts';
import { chargeQuotas } from './resource-quotas.ts';
import { requireWithinLimits, withDefaultLimits } from './limit-ranges.ts';
import type { MatchContext } from './matching.ts';
import { isExempt, matchOf, webhookCriteria } from './matching.ts';
import { validatePolicies } from './policies.ts';
import type { WebhookClient } from './webhook-client.ts';
import type { Invocation } from './webhooks.ts';
import { callMutating, callValidating, webhooksOf } from './webhooks.ts';

const GROUP = 'admissionregistration.k8s.io';

export interface AdmissionDeps extends MatchContext {
  readonly client: WebhookClient;
  readonly clock: Pick<Clock, 'now'>;
  /** Returns a new random UUID. */
  readonly uid: () => string;
}

/**
 * Admission by configuration, in upstream's order:
 *
 *   defaults of LimitRanges ► mutating webhooks ► schema and rules of the kind
 *     ► limits of LimitRanges ► validating policies ► validating webhooks ► ResourceQuotas
 *
 * Nothing is awaited unless a webhook is called, so that other writes stay atomic.
 */
export class Admission implements AdmissionChain {
  readonly #deps: AdmissionDeps;
  readonly #mutatingWebhooks: Collection;
  readonly #validatingWebhooks: Collection;
  readonly #policies: Collection;
  readonly #bindings: Collection;
  readonly #limitRanges: Collection;
  readonly #quotas: Collection;

  constructor(deps: AdmissionDeps) {
    this.#deps = deps;
    const collection = (plural: string) => deps.store.collection({ group: GROUP, plural });
    this.#mutatingWebhooks = collection('mutatingwebhookconfigurations');
    this.#validatingWebhooks = collection('validatingwebhookconfigurations');
    this.#policies = collection('validatingadmissionpolicies');
    this.#bindings = collection('validatingadmissionpolicybindings');
    this.#limitRanges = deps.store.collection({ group: '', plural: 'limitranges' });
    this.#quotas = deps.store.collection({ group: '', plural: 'resourcequotas' });
  }

  get mutates(): boolean {
    return this.#mutatingWebhooks.size > 0 || this.#limitRanges.size > 0;
  }

  get validates(): boolean {
    return (
      this.#validatingWebhooks.size > 0 ||
      this.#bindings.size > 0 ||
      this.#limitRanges.size > 0 ||
      this.#quotas.size > 0
    );
  }

  mutate(given: Attributes): MaybePromise<StoredObject | undefined> {
    if (isExempt(given)) return given.object;
    const limited = withDefaultLimits(given, this.#limitRanges.list(given.namespace));
    const attributes = { ...given, object: limited };
    const hooks = this.#mutatingWebhooks.list().flatMap(webhooksOf);
    const applies = hooks.some((hook) => this.#invocation(hook, attributes));
    return applies ? this.#callMutating(hooks, attributes) : attributes.object;
  }

  validate(attributes: Attributes): MaybePromise<void> {
    if (isExempt(attributes)) return;
    requireWithinLimits(attributes, this.#limitRanges.list(attributes.namespace));
    if (this.#bindings.size > 0) {
      validatePolicies(attributes, this.#policies.list(), this.#bindings.list(), this.#deps);
    }
    const invocations = this.#validatingWebhooks
      .list()
      .flatMap(webhooksOf)
      .flatMap((hook) => this.#invocation(hook, attributes) ?? []);
    const called =
      invocations.length > 0 ? callValidating(this.#deps, attributes, invocations) : undefined;
    return whenReady(called, () => chargeQuotas(attributes, this.#quotas, this.#deps.clock.now()));
  }

  admit(attributes: Attributes): MaybePromise<void> {
    if (!this.mutates) return this.validate(attributes);
    return whenReady(this.mutate(attributes), () => this.validate(attributes));
  }

  /** Calls webhooks one after another, and some again after later changes (`reinvocationPolicy`). */
  async #callMutating(
    hooks: readonly (readonly [id: string, webhook: JsonObject])[],
    attributes: Attributes,
  ): Promise<StoredObject | undefined> {
    let { object } = attributes;
    /** Reinvocable webhooks that were called since the last change, and before it. */
    let called = new Set<string>();
    let outdated = new Set<string>();
    for (const round of ['first', 'again'] as const) {
      if (round === 'again' && outdated.size === 0) break;
      for (const hook of hooks) {
        const [id, webhook] = hook;
        const current = { ...attributes, object };
        const invocation = this.#invocation(hook, current);
        if (!invocation || (round === 'again' && !outdated.has(id))) continue;
        const changed = await callMutating(this.#deps, current, invocation);
        if (changed !== object) {
          outdated = outdated.union(called);
          called = new Set();
          object = changed;
        }
        if (textIn(webhook, 'reinvocationPolicy') === 'IfNeeded') called.add(id);
      }
    }
    return object;
  }

  /** @throws {StatusError} 403 if a match condition fails and the webhook does not ignore failures */
  #invocation(
    [id, webhook]: readonly [id: string, webhook: JsonObject],
    attributes: Attributes,
  ): Invocation | undefined {
    const match = matchOf(attributes, webhookCriteria(webhook), this.#deps);
    if (!match) return undefined;
    const conditions = conditionsOf(webhook);
    if (conditions.expressions.length > 0) {
      const { object, oldObject, definition, name } = attributes;
      const versioned = (each: StoredObject | undefined) =>
        each && convertedTo(each, definition, match);
      const applies = evaluateConditions(conditions, {
        object: versioned(object),
        oldObject: versioned(oldObject),
        request: admissionRequest(attributes, match),
        namespaceObject: undefined,
      });
      if (applies === false) return undefined;
      if (applies !== true) {
        if (textIn(webhook, 'failurePolicy') === 'Ignore') return undefined;
        throw forbidden(definition, name, applies.error);
      }
    }
    return { id, webhook, match };
  }
}

/** Stored configurations are immutable, so that their conditions are compiled once. */
const compiled = new WeakMap<JsonObject, Conditions>();

function conditionsOf(webhook: JsonObject): Conditions {
  let conditions = compiled.get(webhook);
  if (!conditions) {
    conditions = compileConditions(objectsIn(webhook, 'matchConditions'), new Environment(false));
    compiled.set(webhook, conditions);
  }
  return conditions;
}
