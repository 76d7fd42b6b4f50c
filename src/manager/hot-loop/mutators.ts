import { MUTATING_ADMISSION_POLICIES, MUTATING_WEBHOOK_CONFIGURATIONS } from '../../api/builtin.ts';
import { collectionPath } from '../../api/resource.ts';
import type { Resource } from '../../api/resource.ts';
import type { Client } from '../../client/client.ts';
import type { Clock } from '../../util/clock.ts';
import { listIn, objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { withinTimeout } from '../../util/within-timeout.ts';

/** Timeout for reading the objects of one kind, in milliseconds. */
const LOOKUP_TIMEOUT_MS = 5000;

const MAX_MUTATORS = 5;
const MAX_READ = 500;

/** The kinds of mutating admission, and where their rules are. */
const KINDS = [
  {
    kind: MUTATING_ADMISSION_POLICIES,
    rulesOf: (object: JsonObject) =>
      objectsIn(objectIn(objectIn(object, 'spec'), 'matchConstraints'), 'resourceRules'),
  },
  {
    kind: MUTATING_WEBHOOK_CONFIGURATIONS,
    rulesOf: (object: JsonObject) =>
      objectsIn(object, 'webhooks').flatMap((webhook) => objectsIn(webhook, 'rules')),
  },
] as const;

/** Mutating webhooks and admission policies, and the first error of a read. */
export interface Mutators {
  readonly names: readonly string[];
  readonly error?: unknown;
}

/**
 * Returns the mutating webhooks and admission policies that can change new objects of a resource, as
 * `MutatingAdmissionPolicy "NAME"`. Those that the program may not read are missing: most controllers have no such
 * permission.
 */
export async function mutatorsOf(
  { client, clock }: { readonly client: Pick<Client, 'raw'>; readonly clock: Clock },
  resource: Resource,
  signal: AbortSignal,
): Promise<Mutators> {
  const found: string[] = [];
  let failure: { readonly error: unknown } | undefined;
  for (const { kind, rulesOf } of KINDS) {
    try {
      const path = `${collectionPath(kind)}?limit=${MAX_READ}`;
      const objects = await withinTimeout(
        { clock, timeoutMs: LOOKUP_TIMEOUT_MS, signal },
        (limit) => client.raw({ path, signal: limit }),
      );
      for (const object of objectsIn(isRecord(objects) ? objects : undefined, 'items')) {
        if (!rulesOf(object).some((rule) => isAbout(rule, resource))) continue;
        found.push(`${kind.kind} ${JSON.stringify(textIn(objectIn(object, 'metadata'), 'name'))}`);
      }
    } catch (error) {
      failure ??= { error };
    }
  }
  return { names: found.slice(0, MAX_MUTATORS), ...failure };
}

function isAbout(rule: JsonObject, { group, version, plural }: Resource): boolean {
  const has = (field: string, value: string) => {
    const values = listIn(rule, field);
    return values.includes('*') || values.includes(value);
  };
  return (
    (has('resources', plural) || listIn(rule, 'resources').includes('*/*')) &&
    has('apiGroups', group) &&
    has('apiVersions', version) &&
    has('operations', 'CREATE')
  );
}
