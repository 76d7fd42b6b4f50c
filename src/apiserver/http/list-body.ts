import type { ListState } from '../operations/call.ts';
import { ConnectionReset } from './faults.ts';
import { encodeExactJson } from '../json/json-text.ts';
import type { ListRendering } from '../request/negotiation.ts';
import type { MessageType } from '../protobuf/decode-message.ts';
import { encodeList } from '../protobuf/protobuf-body.ts';
import type { JsonObject } from '../../util/json-value.ts';

/** Approximate size of each chunk in characters. */
const CHUNK_CHARACTERS = 64 * 1024;

const encoder = new TextEncoder();

export function listBody(
  rendering: ListRendering,
  state: ListState,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { encoding, message } = rendering;
  return encoding === 'protobuf' && message
    ? protobufBody(rendering, message, state)
    : jsonBody(rendering, state);
}

/** The length of the list is before its items, so that they are encoded together. */
async function* protobufBody(
  { head, item }: ListRendering,
  message: MessageType,
  { objects }: ListState,
): AsyncGenerator<Uint8Array, void, undefined> {
  const items = objects.map((object): JsonObject => ({ ...item(object) }));
  yield encodeList({ ...head }, items, message);
}

/**
 * Streams a list as JSON. Encodes each chunk on demand, so that a slow reader needs no memory besides
 * the objects in the store or the history. The stream breaks if the reader is so slow that the history
 * drops objects of the list.
 */
async function* jsonBody(
  { head, field, item, isNullIfEmpty }: ListRendering,
  { objects, revision, history }: ListState,
): AsyncGenerator<Uint8Array, void, undefined> {
  let left = history.compacted > revision ? [] : objects;
  const unfollow = history.follow({
    onForgotten: (forgotten) => {
      if (forgotten > revision) left = [];
    },
  });
  try {
    const start = `${encodeExactJson(head).slice(0, -1)},"${field}":`;
    if (objects.length === 0 && isNullIfEmpty) {
      yield encoder.encode(`${start}null}\n`);
      return;
    }
    let text = `${start}[`;
    for (let index = 0; index < objects.length; index++) {
      const object = left[index];
      if (!object) throw new ConnectionReset();
      text += `${index === 0 ? '' : ','}${encodeExactJson(item(object))}`;
      if (text.length < CHUNK_CHARACTERS) continue;
      yield encoder.encode(text);
      text = '';
    }
    yield encoder.encode(`${text}]}\n`);
  } finally {
    unfollow();
  }
}
