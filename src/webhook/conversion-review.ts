import type { KubernetesObject } from '../api/object.ts';
import type { Resource } from '../api/resource.ts';
import { isRecord, messageOf } from '../util/values.ts';
import { BadReview, uidOf } from './admission-review.ts';
import type { Unchecked } from './admission-review.ts';
import type { ConversionEntry, PartialObject, Spoke } from './declaration.ts';

/** The response of a ConversionReview. */
export interface ConversionResponse extends Unchecked {
  readonly uid: string;
  readonly result: { readonly status: 'Success' | 'Failure'; readonly message?: string };
  /** One for each object of the request, in their order; empty after a failure. */
  readonly convertedObjects: readonly unknown[];
}

/** Maximum length of the message of a failure, which can have texts of the object. */
const MAX_MESSAGE_LENGTH = 4096;

/** Converts one object to another version. */
type Convert = (object: PartialObject<KubernetesObject>) => unknown;

/**
 * Converts the objects of a ConversionReview, all or none.
 *
 * @param failed called with the error of the object that could not be converted
 * @throws {BadReview} if the request is not that of a ConversionReview
 */
export function reviewConversion(
  conversions: readonly ConversionEntry[],
  request: Unchecked,
  failed: (error: unknown) => void,
): ConversionResponse {
  const uid = uidOf(request);
  const { desiredAPIVersion, objects } = request;
  if (typeof desiredAPIVersion !== 'string' || !Array.isArray(objects)) {
    throw new BadReview('request.desiredAPIVersion or request.objects is missing');
  }
  const convertedObjects: unknown[] = [];
  for (const object of objects) {
    try {
      convertedObjects.push(convertObject(conversions, object, desiredAPIVersion));
    } catch (error) {
      failed(error);
      const text = `${describe(object)} to ${desiredAPIVersion}: ${messageOf(error)}`;
      const message = text.slice(0, MAX_MESSAGE_LENGTH);
      return { uid, result: { status: 'Failure', message }, convertedObjects: [] };
    }
  }
  return { uid, result: { status: 'Success' }, convertedObjects };
}

/**
 * Converts an object to another version of its kind, through the hub. The metadata stay, except for labels and
 * annotations.
 *
 * @throws {RangeError} if there is no such conversion
 * @throws {TypeError} if a function does not return an object
 * @throws what a function throws
 */
export function convertObject(
  conversions: readonly ConversionEntry[],
  object: unknown,
  apiVersion: string,
): unknown {
  if (!isRecord(object)) throw new TypeError('it is not an object');
  const { apiVersion: from, kind } = object;
  if (typeof from !== 'string' || typeof kind !== 'string') {
    throw new TypeError('apiVersion or kind is missing');
  }
  if (from === apiVersion) return object;
  const [group, fromVersion] = split(from);
  const [targetGroup, toVersion] = split(apiVersion);
  const entry = conversions.find(({ hub }) => hub.group === group && hub.kind === kind);
  if (!entry || group !== targetGroup) throw new RangeError('no conversion is declared');
  const { hub } = entry;
  const up = fromVersion === hub.version ? undefined : spokeOf(entry, fromVersion);
  const down = toVersion === hub.version ? undefined : spokeOf(entry, toVersion);
  // Objects of requests have the fields of their version.
  let converted = object as unknown as PartialObject<KubernetesObject>;
  if (up) converted = withMetadata(up.up, converted, hub);
  if (down) converted = withMetadata(down.down, converted, down.resource);
  return converted;
}

/** Calls a function, and completes its result with the metadata of the original. */
function withMetadata(
  convert: Convert,
  original: PartialObject<KubernetesObject>,
  { group, version }: Pick<Resource, 'group' | 'version'>,
): PartialObject<KubernetesObject> {
  const result = convert(original);
  if (!isRecord(result) || 'then' in result) {
    throw new TypeError('the conversion did not return an object');
  }
  const { kind } = original;
  const { labels, annotations } = isRecord(result['metadata']) ? result['metadata'] : {};
  const metadata = {
    ...original.metadata,
    ...(isRecord(labels) && { labels }),
    ...(isRecord(annotations) && { annotations }),
  } as PartialObject<KubernetesObject>['metadata'];
  return { ...result, apiVersion: `${group}/${version}`, kind, metadata };
}

function spokeOf({ spokes }: ConversionEntry, version: string): Spoke {
  const spoke = spokes.find(({ resource }) => resource.version === version);
  if (!spoke) throw new RangeError(`the version ${version} is not declared`);
  return spoke;
}

function split(apiVersion: string): [group: string, version: string] {
  const slash = apiVersion.indexOf('/');
  return [apiVersion.slice(0, Math.max(0, slash)), apiVersion.slice(slash + 1)];
}

/** Returns `Box.test.example.com/v1 "default/web"`, without other content. */
function describe(object: unknown): string {
  if (!isRecord(object)) return 'cannot convert a value that is not an object';
  const { apiVersion, kind, metadata } = object;
  const { namespace, name } = isRecord(metadata) ? metadata : {};
  const key = [namespace, name].filter((each) => typeof each === 'string').join('/');
  return `cannot convert ${String(kind)} ${JSON.stringify(key)} from ${String(apiVersion)}`;
}
