import { listIn, objectIn, textIn } from '../../util/json-value.ts';
import type { WebhookCaller } from '../objects/webhook-call.ts';
import { WebhookCallError } from '../objects/webhook-call.ts';
import { isRecord } from '../../util/values.ts';
import type {
  ApiObject,
  WebhookConversion,
  ResourceDefinition,
  StoredObject,
} from '../objects/resource-definition.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { JsonObject } from '../../util/json-value.ts';
import { messageOfKind } from '../protobuf/protobuf-body.ts';
import { withoutEmptyLists } from '../protobuf/zero-values.ts';
import { applyDefaults } from '../schema/defaulting.ts';
import { prune } from '../schema/pruning.ts';
import { StatusError } from '../objects/status-error.ts';
import { goQuote } from '../../util/go-quote.ts';

/** Objects in one review. */
const MAX_OBJECTS = 500;
const TIMEOUT_MS = 30_000;

type Versioned = ResourceDefinition & { readonly conversion: WebhookConversion };

/** Converts custom resources between versions by the webhook of their CRD. */
export class CrdConverter {
  readonly #client: WebhookCaller;
  readonly #uid: () => string;

  constructor(client: WebhookCaller, uid: () => string) {
    this.#client = client;
    this.#uid = uid;
  }

  /**
   * Converts stored objects to the version of `definition`, so that `toRequestedVersion` returns them. Returns no promise if no
   * webhook has to be called.
   *
   * @throws {StatusError} 500 if the webhook does not convert them
   */
  prepare(
    objects: readonly StoredObject[],
    definition: ResourceDefinition,
  ): Promise<void> | undefined {
    if (!hasConversion(definition)) return undefined;
    const { converted } = definition.conversion;
    const version = apiVersionOf(definition, definition.version);
    const missing = objects.filter(
      (object) => object.apiVersion !== version && !converted.has(object),
    );
    return missing.length > 0 ? this.#prepare(missing, definition, version) : undefined;
  }

  /**
   * Returns an object of the version of `definition` in the storage version.
   *
   * @throws {StatusError} 500 if the webhook does not convert it
   */
  async toStorage(object: ApiObject, definition: ResourceDefinition): Promise<ApiObject> {
    const { storageVersion, versionSchemas } = definition;
    if (storageVersion === undefined) return storedInProtobuf(object, definition);
    const version = apiVersionOf(definition, storageVersion);
    if (object.apiVersion === version) return object;
    const schema = versionSchemas?.[storageVersion];
    const converted = pruneObject(await this.convert(object, definition, version), schema);
    return schema ? applyDefaults(converted, schema) : converted;
  }

  /**
   * Converts an object without pruning it.
   *
   * @throws {StatusError} 500 if the webhook does not convert it
   */
  async convert(
    object: ApiObject,
    definition: ResourceDefinition,
    apiVersion: string,
  ): Promise<ApiObject> {
    if (!hasConversion(definition)) return { ...object, apiVersion };
    const [converted = object] = await this.#convert([object], definition, apiVersion);
    return converted;
  }

  async #prepare(
    objects: readonly StoredObject[],
    definition: Versioned,
    version: string,
  ): Promise<void> {
    for (let start = 0; start < objects.length; start += MAX_OBJECTS) {
      const batch = objects.slice(start, start + MAX_OBJECTS);
      const results = await this.#convert(batch, definition, version);
      for (const [index, object] of batch.entries()) {
        const result = results[index];
        if (result)
          definition.conversion.converted.set(object, pruneObject(result, definition.schema));
      }
    }
  }

  async #convert(
    objects: readonly StoredObject[],
    { kind, conversion }: Versioned,
    desiredAPIVersion: string,
  ): Promise<readonly ApiObject[]> {
    const [first] = objects;
    const subject = `conversion webhook for ${first?.apiVersion}, Kind=${kind}`;
    const { webhook } = conversion;
    const reviewVersion = listIn(webhook, 'conversionReviewVersions').find(
      (each) => each === 'v1' || each === 'v1beta1',
    );
    const uid = this.#uid();
    const review = {
      apiVersion: `apiextensions.k8s.io/${reviewVersion}`,
      kind: 'ConversionReview',
    };
    let answer: JsonObject;
    try {
      answer = await this.#client.call({
        client: objectIn(webhook, 'clientConfig') ?? {},
        review,
        request: { uid, desiredAPIVersion, objects },
        timeoutMs: TIMEOUT_MS,
        signal: undefined,
      });
    } catch (error) {
      if (!(error instanceof WebhookCallError)) throw error;
      throw failure(`${subject} failed: ${error.message}`);
    }
    const response = objectIn(answer, 'response');
    const problem = problemOf(response, uid);
    if (problem !== undefined) throw failure(`${subject} failed: ${problem}`);
    const results = listIn(response, 'convertedObjects');
    if (results.length !== objects.length) {
      const counts = `returned ${results.length} objects, expected ${objects.length}`;
      throw failure(`${subject} ${counts}`);
    }
    return objects.map((object, index) => {
      const result = restored(object, results[index], desiredAPIVersion);
      if (typeof result === 'string') throw failure(`${subject} returned ${result}`);
      return result;
    });
  }
}

function hasConversion(definition: ResourceDefinition): definition is Versioned {
  return definition.conversion !== undefined;
}

function apiVersionOf({ group }: ResourceDefinition, version: string): string {
  return `${group}/${version}`;
}

function failure(message: string): StatusError {
  return StatusError.failure({ code: 500, message });
}

/** Returns why a response is not a success. */
function problemOf(response: JsonObject | undefined, uid: string): string | undefined {
  if (!response) return 'no response provided';
  if (response['uid'] !== uid) {
    return `expected response.uid=${goQuote(uid)}, got ${goQuote(textIn(response, 'uid'))}`;
  }
  const result = objectIn(response, 'result');
  const status = textIn(result, 'status');
  if (status === 'Success') return undefined;
  return textIn(result, 'message') || `response.result.status was '${status}', not 'Success'`;
}

/** Returns a converted object with its original metadata except labels and annotations, or what is wrong with it. */
function restored(
  original: StoredObject,
  converted: unknown,
  apiVersion: string,
): ApiObject | string {
  if (!isRecord(converted)) return 'invalid object: it is not an object';
  const { kind, apiVersion: received } = converted;
  if (received !== apiVersion) {
    return `invalid object at index 0: invalid groupVersion (expected ${apiVersion}, received ${String(received)})`;
  }
  if (kind !== original.kind) {
    return `invalid object at index 0: invalid kind (expected ${original.kind}, received ${String(kind)})`;
  }
  const metadata = objectIn(converted, 'metadata');
  if (!metadata) return 'invalid metadata: missing metadata in converted object';
  for (const [field, name] of IDENTITY) {
    const [before, after] = [original.metadata[field] ?? '', textIn(metadata, field)];
    if (before !== after)
      return `invalid object: must have the same ${name}: ${before} != ${after}`;
  }
  const { labels: _labels, annotations: _annotations, ...kept } = original.metadata;
  const texts: Record<string, unknown> = {};
  for (const field of ['labels', 'annotations']) {
    const value = objectIn(metadata, field);
    if (value && Object.values(value).some((each) => typeof each !== 'string')) {
      return `invalid metadata: metadata.${field} must contain strings`;
    }
    if (value) texts[field] = value;
  }
  return {
    ...converted,
    apiVersion,
    kind: original.kind,
    metadata: { ...kept, ...texts } as ApiObject['metadata'],
  };
}

const IDENTITY = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** Removes the fields that the schema does not declare. Defaults are those of the stored version. */
function pruneObject(object: ApiObject, schema: JsonSchema | undefined): ApiObject {
  if (schema) prune(object, schema);
  return object;
}

/** The groups of servers that store JSON. */
const STORED_AS_JSON: ReadonlySet<string> = new Set([
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
]);

/** Returns an object of a built-in kind as it is read from storage. */
function storedInProtobuf(object: ApiObject, definition: ResourceDefinition): ApiObject {
  const message = messageOfKind(definition);
  if (!message || STORED_AS_JSON.has(definition.group)) return object;
  const { apiVersion, kind, metadata, ...members } = object;
  return { apiVersion, kind, metadata, ...withoutEmptyLists(members, message) };
}
