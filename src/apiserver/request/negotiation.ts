import { Memo } from '../../util/memo.ts';
import type { MessageType } from '../protobuf/decode-message.ts';
import { messageTypeOf } from '../protobuf/decode-message.ts';
import { PROTOBUF_TYPE, messageOfKind } from '../protobuf/protobuf-body.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { prune } from '../schema/pruning.ts';
import {
  badRequest,
  noRepresentation,
  notAcceptable,
  wrongMetadataForm,
} from '../objects/status-error.ts';
import type { IncludeObject, MetaVersion } from '../table/table.ts';
import { partialMetadata, renderTable, tableRow } from '../table/table.ts';
import { DEFAULT_COLUMNS } from '../table/column.ts';

/** One entry of an `Accept` header: `application/json;as=Table;v=v1`. */
export interface MediaRange {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/** How a response is serialized. */
export type Encoding = 'json' | 'yaml' | 'protobuf';

/** The requested representation of objects. `drop`: without managedFields (KEP-5958). */
export type Representation = {
  /** @default 'json' */
  readonly encoding?: Encoding;
} & Form;

type Form =
  | { readonly form: 'object'; readonly drop?: boolean }
  /** `list`: whether the list form was requested, not that of a single object. */
  | {
      readonly form: 'metadata';
      readonly list: boolean;
      readonly version: MetaVersion;
      readonly drop?: boolean;
    }
  | {
      readonly form: 'table';
      readonly includeObject: IncludeObject;
      readonly version: MetaVersion;
    };

export interface ListMeta {
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export const JSON_TYPE = 'application/json';
export const YAML_TYPE = 'application/yaml';
const META_GROUP = 'meta.k8s.io';

/** Cached, because clients repeat the same header. */
const known = new Memo(100, parseAccept);

/** Returns the entries of an `Accept` header by descending preference. */
export function mediaRanges(accept: string | undefined): readonly MediaRange[] {
  return known.get(accept || '*/*');
}

function parseAccept(header: string): MediaRange[] {
  return header
    .split(',')
    .map((entry) => {
      const [type = '', ...parameters] = entry.split(';').map((part) => part.trim());
      return {
        type: type.toLowerCase(),
        parameters: new Map(
          parameters.map((parameter): [string, string] => {
            const at = parameter.indexOf('=');
            return at < 0
              ? [parameter, '']
              : [parameter.slice(0, at).toLowerCase(), parameter.slice(at + 1)];
          }),
        ),
      };
    })
    .sort((a, b) => qualityOf(b) - qualityOf(a));
}

/** Whether the range includes plain JSON. */
function takesJson({ type }: MediaRange): boolean {
  return type === JSON_TYPE || type === 'application/*' || type === '*/*';
}

/** Media types of objects and of streams, in the order of kube-apiserver's messages. */
export const OBJECT_TYPES: readonly string[] = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE];
const STREAM_TYPES = [`${JSON_TYPE};stream=watch`, `${PROTOBUF_TYPE};stream=watch`];

/** Returns the encoding that a range includes, if any. */
export function encodingIn(range: MediaRange): Encoding | undefined {
  if (takesJson(range)) return 'json';
  if (range.type === YAML_TYPE) return 'yaml';
  return range.type === PROTOBUF_TYPE ? 'protobuf' : undefined;
}

const encodings = new Memo(100, (accept: string): Encoding | undefined => {
  for (const range of mediaRanges(accept)) {
    const encoding = range.parameters.has('as') ? undefined : encodingIn(range);
    if (encoding) return encoding;
  }
  return undefined;
});

/** Returns the encoding of an object that has one representation, such as a Status; JSON by default. */
export function encodingOf(accept: string | undefined): Encoding {
  return (accept === undefined ? undefined : encodings.get(accept)) ?? 'json';
}

/**
 * Returns the encoding of an object that has one representation.
 *
 * @throws {StatusError} 406 if the client accepts none
 */
export function requireEncoding(accept: string | undefined): Encoding {
  const encoding = encodings.get(accept || '*/*');
  if (encoding) return encoding;
  throw notAcceptable(OBJECT_TYPES);
}

/**
 * Checks that the client accepts a response of these media types, as the router of a kube-apiserver does for its
 * own resources: it compares names and knows no wildcard but `*` + `/*`.
 *
 * @param streams whether the path also serves watches
 * @throws {StatusError} 406 if it accepts none
 */
export function requireMediaType(
  accept: string | undefined,
  types: readonly string[] = OBJECT_TYPES,
  streams: boolean = false,
): void {
  if (mediaRanges(accept).some(({ type }) => type === '*/*' || types.includes(type))) return;
  throw noRepresentation(streams ? [...types, ...STREAM_TYPES] : types);
}

/**
 * Returns the first requested representation that the server supports. Custom resources have no protobuf
 * encoding, and tables have none.
 *
 * @throws {StatusError} 406 if it supports none
 */
export function negotiate(
  accept: string | undefined,
  includeObject: string | null,
  { custom }: Pick<ResourceDefinition, 'custom'>,
  isStream: boolean = false,
): Representation {
  for (const range of mediaRanges(accept)) {
    const encoding = encodingIn(range);
    const form = encoding && formOf(range, includeObject);
    if (!form) continue;
    if (encoding === 'protobuf' && (form.form === 'table' || (custom && form.form === 'object'))) {
      continue;
    }
    // As upstream, which then does not try the next choice.
    if (isStream && encoding === 'yaml') throw notAcceptable(STREAM_TYPES);
    return { encoding, ...form };
  }
  throw notAcceptable(OBJECT_TYPES);
}

/** Returns the form that the parameters of a range request; undefined if it does not exist. */
function formOf(range: MediaRange, includeObject: string | null): Form | undefined {
  const as = range.parameters.get('as');
  const drop = dropsManagedFields(range);
  if (as === undefined) return { form: 'object', drop };
  if (range.parameters.get('g') !== META_GROUP) return undefined;
  const version = range.parameters.get('v');
  if (version !== 'v1' && version !== 'v1beta1') return undefined;
  if (as === 'Table') {
    return { form: 'table', includeObject: includeObjectOf(includeObject), version };
  }
  if (as === 'PartialObjectMetadata' || as === 'PartialObjectMetadataList') {
    return { form: 'metadata', list: as === 'PartialObjectMetadataList', version, drop };
  }
  return undefined;
}

/** Whether managedFields should be left out; other values of the parameter are ignored. */
function dropsManagedFields({ parameters }: MediaRange): boolean {
  return parameters.get('drop')?.split('+').includes('metadata.managedFields') ?? false;
}

/** Drops fields after the conversion, because converted objects are found by the identity of the stored ones. */
function trimmed<T extends Pick<StoredObject, 'metadata'>>(
  object: T,
  { drop }: { readonly drop?: boolean },
): T {
  if (!drop) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Returns one object in a representation. */
export function represent(
  object: StoredObject,
  definition: ResourceDefinition,
  representation: Representation,
  now: number,
): object {
  switch (representation.form) {
    case 'object':
      return trimmed(toRequestedVersion(object, definition), representation);
    case 'metadata':
      if (representation.list) throw wrongMetadataForm(definition, false);
      return partialMetadata(
        trimmed(toRequestedVersion(object, definition), representation),
        representation.version,
      );
    case 'table':
      return renderTable(definition, [toRequestedVersion(object, definition)], {
        version: representation.version,
        includeObject: representation.includeObject,
        listMeta: { resourceVersion: object.metadata.resourceVersion },
        now,
      });
  }
}

/** The parts of a list response in the requested representation. */
export interface ListRendering {
  /** The list without its objects. */
  readonly head: object;
  /** Field of the objects, which is the last one. */
  readonly field: 'items' | 'rows';
  /**
   * Whether an empty list is null, as upstream, where no item has created it.
   * @default false
   */
  readonly isNullIfEmpty?: boolean;
  readonly item: (object: StoredObject) => object;
  readonly encoding: Encoding;
  /** The protobuf message of an item, if the form has one. */
  readonly message: MessageType | undefined;
}

/** Returns the parts of a list response in a representation. */
export function renderList(
  metadata: ListMeta,
  definition: ResourceDefinition,
  representation: Representation,
  now: number,
): ListRendering {
  const { encoding = 'json' } = representation;
  switch (representation.form) {
    case 'object':
      return {
        head: {
          kind: definition.listKind,
          apiVersion: apiVersionIn(definition),
          // As upstream, which writes the lists of custom resources field by field.
          metadata: definition.custom ? { continue: '', ...metadata } : metadata,
        },
        field: 'items',
        encoding,
        message: messageOfKind(definition),
        item: (object) => trimmed(listItem(object, definition), representation),
      };
    case 'metadata': {
      const { list, version } = representation;
      if (!list) throw wrongMetadataForm(definition, true);
      return {
        head: {
          kind: 'PartialObjectMetadataList',
          apiVersion: `${META_GROUP}/${version}`,
          metadata,
        },
        field: 'items',
        isNullIfEmpty: true,
        encoding,
        message: messageTypeOf('meta.v1.PartialObjectMetadata'),
        item: (object) =>
          partialMetadata(trimmed(toRequestedVersion(object, definition), representation), version),
      };
    }
    case 'table': {
      const { version, includeObject } = representation;
      const options = { version, includeObject, listMeta: metadata, now };
      const { rows: _none, ...head } = renderTable(definition, [], options);
      return {
        head,
        field: 'rows',
        isNullIfEmpty:
          definition.columns === DEFAULT_COLUMNS || definition.group === 'apiextensions.k8s.io',
        encoding,
        message: undefined,
        item: (object) => tableRow(definition, toRequestedVersion(object, definition), options),
      };
    }
  }
}

/**
 * Returns a stored object in the requested version or representation. The router converts objects of CRDs with a
 * webhook before.
 */
export function toRequestedVersion(
  object: StoredObject,
  definition: ResourceDefinition,
): StoredObject {
  const apiVersion = apiVersionIn(definition);
  if (object.apiVersion === apiVersion) return object;
  if (definition.conversion) {
    const converted = definition.conversion.converted.get(object);
    if (converted) return converted;
    throw new Error(`${object.metadata.name} is not converted to ${apiVersion}`);
  }
  if (definition.storedAs) return definition.storedAs.fromStored(object);
  const converted = { ...object, apiVersion };
  if (definition.custom && definition.schema) prune(converted, definition.schema);
  return converted;
}

/** Returns the apiVersion: `v1`, `apps/v1`. */
export function apiVersionIn({ group, version }: ResourceDefinition): string {
  return group ? `${group}/${version}` : version;
}

/** Whether an object has the kind and version of a definition. A patch can change those of a custom resource. */
export function isOfType(
  { apiVersion, kind }: Pick<StoredObject, 'apiVersion' | 'kind'>,
  definition: ResourceDefinition,
): boolean {
  return kind === definition.kind && apiVersion === apiVersionIn(definition);
}

/** Items of built-in kinds have no apiVersion and kind in lists. */
function listItem(
  object: StoredObject,
  definition: ResourceDefinition,
): Pick<StoredObject, 'metadata'> {
  if (definition.custom) return toRequestedVersion(object, definition);
  const { apiVersion: _version, kind: _kind, ...item } = toRequestedVersion(object, definition);
  return item;
}

/** @throws {StatusError} 400 if the value is invalid */
function includeObjectOf(text: string | null): IncludeObject {
  const include = text || 'Metadata';
  if (include === 'None' || include === 'Metadata' || include === 'Object') return include;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(text)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

function qualityOf({ parameters }: MediaRange): number {
  const quality = Number(parameters.get('q') ?? 1);
  return Number.isFinite(quality) ? quality : 0;
}
