import type { Clock } from '../util/clock.ts';
import { jsonText } from './json-text.ts';
import type { Representation } from './negotiation.ts';
import { apiVersionIn, inVersion, represent } from './negotiation.ts';
import type { ResourceDefinition, StoredObject } from './resource-definition.ts';
import { renderTable } from './table/table.ts';

export type ObjectEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Marks the bookmark that ends the initial state. */
const INITIAL_EVENTS_END = { 'k8s.io/initial-events-end': 'true' };

const encoder = new TextEncoder();

/** Makes the lines of one watch, in the representation its client wants. */
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

  /** An object's event. `shared` holds the lines that watches of the same form have made of it. */
  object(
    type: ObjectEventType,
    object: StoredObject,
    shared?: Map<string, Uint8Array>,
  ): Uint8Array {
    const { form } = this.#representation;
    if (form === 'table') return line(type, this.#table(object));
    const key = `${type} ${form} ${this.#definition.version}`;
    const known = shared?.get(key);
    if (known) return known;
    const made = line(
      type,
      represent(object, this.#definition, this.#representation, this.#clock.now()),
    );
    shared?.set(key, made);
    return made;
  }

  /** Says that everything up to `revision` has been said. */
  bookmark(revision: number, initialEventsEnd: boolean): Uint8Array {
    const metadataOnly = this.#representation.form === 'metadata';
    return line('BOOKMARK', {
      kind: metadataOnly ? 'PartialObjectMetadata' : this.#definition.kind,
      apiVersion: metadataOnly ? 'meta.k8s.io/v1' : apiVersionIn(this.#definition),
      metadata: {
        resourceVersion: String(revision),
        creationTimestamp: null,
        ...(initialEventsEnd && { annotations: INITIAL_EVENTS_END }),
      },
    });
  }

  error(status: object): Uint8Array {
    return line('ERROR', status);
  }

  /** Columns are described once, with the first row. */
  #table(object: StoredObject): object {
    const { form } = this.#representation;
    const table = renderTable(this.#definition, [inVersion(object, this.#definition)], {
      listMeta: { resourceVersion: object.metadata.resourceVersion },
      now: this.#clock.now(),
      noHeaders: this.#headersSent,
      ...(form === 'table' && { includeObject: this.#representation.includeObject }),
    });
    this.#headersSent = true;
    return table;
  }
}

function line(type: string, object: object): Uint8Array {
  return encoder.encode(`{"type":"${type}","object":${jsonText(object)}}\n`);
}
