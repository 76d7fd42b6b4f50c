import { ConnectionReset } from './faults.ts';
import type { ListRendering } from './negotiation.ts';
import type { StoredObject } from './resource-definition.ts';
import type { WatchHistory } from './watch-history.ts';

/** Objects are sent in pieces of about this many characters. */
const CHUNK_CHARACTERS = 64 * 1024;

const encoder = new TextEncoder();

/** The state that a list shows. */
export interface ListState {
  readonly objects: readonly StoredObject[];
  readonly revision: number;
  readonly history: WatchHistory;
}

/**
 * Streams a list as JSON. Each piece is encoded when the reader asks for it, so a slow reader costs
 * no memory but the objects, which the store or the history holds anyway. When the history forgets
 * objects of the list, the stream breaks: the reader was too slow.
 */
export async function* listBody(
  { head, field, item }: ListRendering,
  { objects, revision, history }: ListState,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = history.compacted > revision ? [] : objects;
  const unfollow = history.follow({
    onForgotten: (forgotten) => {
      if (forgotten > revision) left = [];
    },
  });
  try {
    let text = `${JSON.stringify(head).slice(0, -1)},"${field}":[`;
    for (let index = 0; index < objects.length; index++) {
      const object = left[index];
      if (!object) throw new ConnectionReset();
      text += `${index === 0 ? '' : ','}${JSON.stringify(item(object))}`;
      if (text.length < CHUNK_CHARACTERS) continue;
      yield encoder.encode(text);
      text = '';
    }
    yield encoder.encode(`${text}]}\n`);
  } finally {
    unfollow();
  }
}
