import { objectIn, objectsIn, textIn } from '../../util/json-value.ts';
import { oncePerObject } from '../../util/memo.ts';
import { equalJson } from '../../api/equal.ts';
import { isRecord, messageOf } from '../../util/values.ts';
import { decodeObject } from '../request/object-decoder.ts';
import { PatchError, jsonPatch } from '../patch/json-patch.ts';
import { mergeFields } from '../managedfields/merge-fields.ts';
import { withObjectMeta } from '../managedfields/kind-schema.ts';
import { requireTyped, shapeOf } from '../managedfields/typed-value.ts';
import type { StoredObject } from '../objects/resource-definition.ts';
import { jsonOf } from '../../cel/json-value.ts';
import type { Result, Value } from '../../cel/values/value.ts';
import { Constructed, EvaluationError, List, isDictionary } from '../../cel/values/value.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import { declaredField } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { StatusError, forbiddenError, internalError } from '../objects/status-error.ts';
import { kindOf } from './admission-request.ts';
import type { Attributes } from './attributes.ts';
import { convertedTo } from '../request/conversion.ts';
import { prepareVersions } from './matching.ts';
import type { Conditions, PolicyExpression } from '../../cel/policy-environment.ts';
import {
  Budget,
  PolicyEnvironment,
  OutOfBudget,
  POLICY_LIMIT,
  compileConditions,
  evaluateConditions,
} from '../../cel/policy-environment.ts';
import type { Match, AdmissionContext } from './matching.ts';
import type { PolicyFailure, PolicyInvocation } from './policies.ts';
import { policyVariables, ignoresFailures, shownName } from './policies.ts';

interface CompiledPolicy {
  readonly conditions: Conditions;
  readonly mutations: readonly {
    readonly type: 'ApplyConfiguration' | 'JSONPatch';
    readonly expression: PolicyExpression;
  }[];
}

/**
 * Applies the mutations of a MutatingAdmissionPolicy to the object of a write.
 *
 * @returns the object with its changes; the same value if there are none, undefined if the policy does not apply
 * @throws {StatusError} if the result of a JSON patch is not an object of the kind
 */
export async function mutateByPolicy(
  attributes: Attributes,
  { policy, match, param }: PolicyInvocation,
  context: AdmissionContext,
  failed: (message: string) => void,
): Promise<StoredObject | undefined> {
  const { definition } = attributes;
  const { conditions, mutations } = compiledPolicy(policy);
  if (!attributes.object) return undefined;
  const bindings = policyVariables(attributes, match, context, param);
  const applies = evaluateConditions(conditions, bindings);
  if (applies === false) return undefined;
  if (applies !== true) {
    failed(applies.error);
    return undefined;
  }
  const before = convertedTo(attributes.object, definition, match);
  let object = before;
  for (const { type, expression } of mutations) {
    try {
      const budget = new Budget(POLICY_LIMIT);
      const activation = conditions.environment.bind({ ...bindings, object }, budget);
      const result = activation.evaluate(expression);
      if (result instanceof EvaluationError) throw new Rejected(result.message);
      requireTypeNames(result);
      const patched =
        type === 'JSONPatch' ? patchedBy(object, result) : mergedWith(object, result, match);
      object = decodeObject(patched, { ...match, ...kindOf(attributes, match) }, 'patch').object;
    } catch (error) {
      if (error instanceof StatusError && type === 'JSONPatch') throw internalError(error.message);
      if (!isRejection(error)) throw error;
      failed(error.message);
    }
  }
  if (equalJson(object, before)) return attributes.object;
  await prepareVersions(context.converter, [object], match, definition);
  return convertedTo(object, match, definition);
}

/** A mutation that cannot be applied. `failurePolicy` decides. */
class Rejected extends Error {
  override readonly name = 'Rejected';
}

function isRejection(error: unknown): error is Error {
  return error instanceof Rejected || error instanceof OutOfBudget || error instanceof StatusError;
}

function patchedBy(object: StoredObject, result: Result): JsonObject {
  try {
    const operations = jsonOf(result);
    const patched = jsonPatch(object, operations);
    if (isRecord(patched)) return patched;
    throw new TypeError('the result is not an object');
  } catch (error) {
    if (error instanceof PatchError && error.message.endsWith('test failed')) return object;
    throw new Rejected(`JSON Patch: ${messageOf(error)}`);
  }
}

function mergedWith(object: StoredObject, result: Result, { schema = {} }: Match): JsonObject {
  try {
    const fields = jsonOf(result);
    const { apiVersion, kind } = object;
    const applied = { ...(isRecord(fields) ? fields : {}), apiVersion, kind };
    const complete = withObjectMeta(schema);
    requireTyped(applied, complete);
    const atomic = atomicFields(applied, complete, '');
    if (atomic.length === 0) return mergeFields(object, applied, complete);
    throw new TypeError(
      `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomic.join(', ')}`,
    );
  } catch (error) {
    throw new Rejected(`error applying patch: ${messageOf(error)}`);
  }
}

/** Returns the paths of the lists and objects that can only be replaced as a whole, which a policy must not do. */
function atomicFields(value: unknown, schema: JsonSchema, path: string): readonly string[] {
  if (!Array.isArray(value) && !isRecord(value)) return [];
  const own = shapeOf(value, schema).kind === 'leaf' ? [path] : [];
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    const below = value.flatMap((item, index) => atomicFields(item, items, `${path}[${index}]`));
    return [...own, ...below];
  }
  const below = Object.entries(value).flatMap(([name, member]) => {
    const declared = declaredField(schema, name);
    return declared ? atomicFields(member, declared, `${path}.${name}`) : [];
  });
  return [...own, ...below];
}

/**
 * Checks that the types of constructed objects are the paths of their fields: `Object{spec: Object.spec{}}`.
 *
 * @throws {Rejected}
 */
function requireTypeNames(result: Result): void {
  const problems = result instanceof List ? patchProblems(result) : typeProblems(result, 'Object');
  if (problems.length > 0) throw new Rejected(`type mismatch: ${problems.join('\n')}`);
}

/** The values of a patch can be objects below any path. */
function patchProblems(operations: List): readonly string[] {
  return Array.from(operations).flatMap((operation) => {
    const value = isDictionary(operation) ? operation.get('value') : undefined;
    return value instanceof Constructed ? typeProblems(value, value.typeName) : [];
  });
}

function typeProblems(value: Result, path: string): readonly string[] {
  if (value instanceof List) return Array.from(value).flatMap((item) => typeProblems(item, path));
  if (!isDictionary(value)) return [];
  const isNamed = value instanceof Constructed;
  const own =
    isNamed && value.typeName !== path
      ? [
          `unexpected type name ${JSON.stringify(value.typeName)}, expected ${JSON.stringify(path)}, which matches field name path from root Object type`,
        ]
      : [];
  const below = Array.from(value.keys()).flatMap((key: Value) =>
    typeProblems(value.get(key) ?? null, isNamed ? `${path}.${keyText(key)}` : path),
  );
  return [...own, ...below];
}

function keyText(key: Value): string {
  return typeof key === 'string' ? key : '';
}

/** Stored policies are immutable, so that each is compiled once. */
const compiledPolicy = oncePerObject((policy: StoredObject): CompiledPolicy => {
  const spec = objectIn(policy, 'spec') ?? {};
  const environment = PolicyEnvironment.of(spec);
  const conditions = compileConditions(objectsIn(spec, 'matchConditions'), environment);
  const mutations = objectsIn(spec, 'mutations').map((mutation) => {
    const isPatch = mutation['patchType'] === 'JSONPatch';
    const source = objectIn(mutation, isPatch ? 'jsonPatch' : 'applyConfiguration');
    const expected = isPatch ? 'list(JSONPatch)' : 'Object';
    const expression = environment.compile(textIn(source, 'expression'), expected);
    return { type: isPatch ? 'JSONPatch' : 'ApplyConfiguration', expression } as const;
  });
  return { conditions, mutations };
});

/**
 * Rejects a write whose policies failed.
 *
 * @throws {StatusError} if any of them does not ignore failures
 */
export function requireMutated(attributes: Attributes, failures: readonly PolicyFailure[]): void {
  const counted = failures.filter(({ policy }) => !ignoresFailures(policy));
  const [first] = counted;
  if (!first) return;
  const causes = counted.map(({ policy, binding, message }) => {
    const by = binding
      ? `'${policy.metadata.name}' with binding '${binding.metadata.name}'`
      : JSON.stringify(policy.metadata.name);
    return { message: `policy ${by} denied request: ${message}` };
  });
  const { status } = forbiddenError(attributes.definition, shownName(attributes), '', causes);
  const { reason = 'Forbidden' } = first;
  throw new StatusError({ ...status, message: causes[0]?.message ?? '', reason });
}
