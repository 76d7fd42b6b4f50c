import { goQuote } from '../../../util/go-quote.ts';
import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, objectsIn, own, textIn } from '../../../util/json-value.ts';
import { isRecord } from '../../../util/values.ts';
import { checkOf } from '../../../api/formats.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import type { StoredObject } from '../../objects/resource-definition.ts';

/** Returns the warnings of the schemas of a CRD; of an update, those that the previous CRD does not have. */
export function crdWarnings(
  { value: crd }: CheckedObject<StoredObject>,
  previous?: StoredObject,
): string[] {
  const before = new Set(previous ? all(schemasOf(previous)) : []);
  return all(schemasOf(crd)).filter((warning) => !before.has(warning));
}

function all(schemas: readonly JsonObject[]): string[] {
  return [...schemas.flatMap(formatWarnings), ...new Set(schemas.flatMap(setWarnings).sort())];
}

function formatWarnings(schema: JsonObject): string[] {
  const format = textIn(schema, 'format');
  if (format === '' || isRecognized(textIn(schema, 'type'), format)) return [];
  return [`unrecognized format ${goQuote(format)}`];
}

function isRecognized(type: string, format: string): boolean {
  switch (type) {
    case '':
    case 'string':
      return checkOf(format) !== undefined;
    case 'integer':
      return format === 'int32' || format === 'int64';
    case 'number':
      return format === 'float' || format === 'double';
    default:
      return false;
  }
}

function setWarnings(schema: JsonObject): string[] {
  const type = textIn(objectIn(schema, 'items'), 'type');
  if (schema['x-kubernetes-list-type'] !== 'set') return [];
  return type === 'object' || type === 'array'
    ? [
        `x-kubernetes-list-type: set for items of type "${type}" is not supported by server-side apply or CEL validation rules`,
      ]
    : [];
}

/** Returns the schemas of all versions, and all schemas in them. */
function schemasOf(crd: StoredObject): JsonObject[] {
  const roots = objectsIn(objectIn(crd, 'spec'), 'versions').flatMap(
    (version) => objectIn(objectIn(version, 'schema'), 'openAPIV3Schema') ?? [],
  );
  const found: JsonObject[] = [];
  const visit = (schema: unknown) => {
    if (!isRecord(schema)) return;
    found.push(schema);
    visit(own(schema, 'items'));
    for (const key of ['allOf', 'anyOf', 'oneOf']) objectsIn(schema, key).forEach(visit);
    visit(own(schema, 'not'));
    Object.values(objectIn(schema, 'properties') ?? {}).forEach(visit);
    visit(own(schema, 'additionalProperties'));
  };
  roots.forEach(visit);
  return found;
}
