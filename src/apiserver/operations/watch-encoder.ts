import { linkedSchema, schemaName } from '../schema/builtin-schemas.ts';
import type { JsonSchema } from '../../api/json-schema.ts';
import type { Clock } from '../../util/clock.ts';
import { jsonText } from '../json/json-text.ts';
import type { LineCache } from './line-cache.ts';
import type { Representation } from '../request/negotiation.ts';
import { apiVersionIn, toRequestedVersion, represent } from '../request/negotiation.ts';
import { encodeEvent } from '../protobuf/protobuf-body.ts';
import type { ResourceDefinition, StoredObject } from '../objects/resource-definition.ts';
import { renderTable } from '../table/table.ts';

export type ObjectEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Marks the bookmark that ends the initial state. */
const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

const encoder = new TextEncoder();

/** Encodes the events of one watch, each a line of JSON or a protobuf message, in the representation that its client accepts. */
export class WatchEncoder {
  readonly #definition: ResourceDefinition;
  readonly #representation: Representation;
  readonly #clock: Pick<Clock, 'now'>;
  #headersSent = false;

  constructor(
    definition: ResourceDefinition,
    representation: Representation,
    clock: Pick<Clock, 'now'>,
  ) {
    this.#definition = definition;
    this.#representation = representation;
    this.#clock = clock;
  }

  /** Encodes the event of an object. `lines` caches the lines of watches with the same representation. */
  object(type: ObjectEventType, object: StoredObject, lines?: LineCache): Uint8Array {
    const representation = this.#representation;
    if (representation.form === 'table') return this.#event(type, this.#table(object));
    const make = () =>
      this.#event(type, represent(object, this.#definition, representation, this.#clock.now()));
    if (!lines) return make();
    const { form, drop = false, encoding } = representation;
    const version = form === 'metadata' ? representation.version : apiVersionIn(this.#definition);
    return lines.line(object, `${type} ${form} ${version} ${drop} ${encoding}`, make);
  }

  /** Encodes a bookmark: all changes up to `revision` have been sent. */
  bookmark(revision: number, initialEventsEnd: boolean): Uint8Array {
    const { kind } = this.#definition;
    const representation = this.#representation;
    const metadata = {
      resourceVersion: String(revision),
      ...(initialEventsEnd && { annotations: INITIAL_EVENTS_END }),
    };
    switch (representation.form) {
      case 'object':
        return this.#event('BOOKMARK', {
          kind,
          apiVersion: apiVersionIn(this.#definition),
          metadata,
        });
      case 'metadata': {
        const apiVersion = `meta.k8s.io/${representation.version}`;
        return this.#event('BOOKMARK', { kind: 'PartialObjectMetadata', apiVersion, metadata });
      }
      case 'table':
        return this.#event('BOOKMARK', this.#tableBookmark(metadata, representation));
    }
  }

  error(status: object): Uint8Array {
    return this.#event('ERROR', status);
  }

  /** The row of an object with metadata only, which it has even if the client asks for none. */
  #tableBookmark(
    metadata: { readonly resourceVersion: string },
    { includeObject, version }: Extract<Representation, { form: 'table' }>,
  ): object {
    const { kind, custom, storedAs } = this.#definition;
    const whole = { kind, apiVersion: apiVersionIn(this.#definition), metadata };
    const partial = {
      kind: 'PartialObjectMetadata',
      apiVersion: `meta.k8s.io/${version}`,
      metadata,
    };
    const blank = {
      ...(storedAs && requiredOf(storedAs.definition)),
      ...(!custom && requiredOf(this.#definition)),
      ...whole,
      metadata: { ...metadata, name: '', uid: '', creationTimestamp: '' },
    };
    const table = renderTable(this.#definition, [blank], {
      listMeta: { resourceVersion: metadata.resourceVersion },
      now: this.#clock.now(),
      noHeaders: this.#headersSent,
      version,
    });
    this.#headersSent = true;
    const object = includeObject === 'Object' ? whole : partial;
    return { ...table, rows: table.rows.map(({ cells }) => ({ cells, object })) };
  }

  /** Only the first event of a watch has column definitions. */
  #table(object: StoredObject): object {
    const representation = this.#representation;
    const table = renderTable(this.#definition, [toRequestedVersion(object, this.#definition)], {
      listMeta: { resourceVersion: object.metadata.resourceVersion },
      now: this.#clock.now(),
      noHeaders: this.#headersSent,
      ...(representation.form === 'table' && {
        version: representation.version,
        includeObject: representation.includeObject,
      }),
    });
    this.#headersSent = true;
    return table;
  }

  #event(type: string, object: object): Uint8Array {
    return this.#representation.encoding === 'protobuf'
      ? encodeEvent(type, { ...object })
      : encoder.encode(`{"type":"${type}","object":${jsonText(object)}}\n`);
  }
}

/** Returns the required fields of an empty object in Go. Columns read them without a check. */
function requiredOf(definition: ResourceDefinition): object {
  return requiredFields(linkedSchema(schemaName(definition, definition.kind)));
}

function requiredFields({ required = [], properties = {} }: JsonSchema): object {
  return Object.fromEntries(
    required.map((field) => [
      field,
      EMPTY[properties[field]?.type ?? ''] ?? requiredFields(properties[field] ?? {}),
    ]),
  );
}

const EMPTY: Readonly<Record<string, unknown>> = {
  string: '',
  integer: 0,
  number: 0,
  boolean: false,
  array: [],
};
