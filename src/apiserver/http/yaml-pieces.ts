import { dump } from 'js-yaml';
import type { JsonObject } from '../../util/json-value.ts';
import { isRecord } from '../../util/values.ts';
import { weightLeft } from '../request/pause.ts';

/** Weight of the values of one piece. */
const PIECE_WEIGHT = 32 * 1024;

/**
 * Returns a JSON value as YAML with sorted keys, as `dump` of js-yaml does, in pieces of whole lines. Writing a piece takes a
 * few milliseconds.
 */
export function* yamlPieces(
  value: unknown,
  pieceWeight: number = PIECE_WEIGHT,
): Generator<string, void, undefined> {
  let last = '';
  for (const piece of piecesOf(value, pieceWeight)) yield (last = piece);
  // A document ends explicitly after a text whose empty lines at the end are kept.
  if (last.endsWith('\n\n')) yield END;
}

const END = '...\n';

function* piecesOf(value: unknown, pieceWeight: number): Generator<string, void, undefined> {
  if (weightLeft(value, pieceWeight) >= 0) yield yamlText(value);
  else if (Array.isArray(value)) yield* sequence(value, pieceWeight);
  else if (isRecord(value)) yield* mapping(value, pieceWeight);
  else yield yamlText(value);
}

function yamlText(value: unknown): string {
  const text = dump(value, { noRefs: true, sortKeys: true, lineWidth: -1, seqNoIndent: true });
  return text.endsWith(`\n${END}`) ? text.slice(0, -END.length) : text;
}

function* mapping(value: JsonObject, pieceWeight: number): Generator<string, void, undefined> {
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  for (const batch of batches(entries, pieceWeight)) {
    const [[key, member] = []] = batch;
    const name =
      batch.length === 1 && isDivided(member, pieceWeight) && yamlText({ [key ?? '']: null });
    // A key of many characters has lines of its own.
    if (!name || name.startsWith('?')) {
      yield yamlText(Object.fromEntries(batch));
      continue;
    }
    yield name.replace(/ null\n$/, '\n');
    const indentation = Array.isArray(member) ? '' : '  ';
    for (const piece of piecesOf(member, pieceWeight)) yield indent(piece, indentation);
  }
}

function* sequence(
  items: readonly unknown[],
  pieceWeight: number,
): Generator<string, void, undefined> {
  for (const batch of batches(items, pieceWeight)) {
    const [item] = batch;
    if (batch.length > 1 || !isDivided(item, pieceWeight)) {
      yield yamlText(batch);
      continue;
    }
    let isFirst = true;
    for (const piece of piecesOf(item, pieceWeight)) {
      const lines = indent(piece, '  ');
      yield isFirst ? `- ${lines.slice(2)}` : lines;
      isFirst = false;
    }
  }
}

function isDivided(value: unknown, pieceWeight: number): boolean {
  return typeof value === 'object' && value !== null && weightLeft(value, pieceWeight) < 0;
}

/** Divides items into batches of limited weight. An item that is heavier is alone. */
function* batches<T>(
  items: readonly T[],
  pieceWeight: number,
): Generator<readonly T[], void, undefined> {
  let batch: T[] = [];
  let left = pieceWeight;
  for (const item of items) {
    left = weightLeft([item], left);
    if (left < 0 && batch.length > 0) {
      yield batch;
      batch = [];
      left = weightLeft([item], pieceWeight);
    }
    batch.push(item);
  }
  if (batch.length > 0) yield batch;
}

/** Empty lines, which only texts have, are not indented. */
function indent(lines: string, indentation: string): string {
  return indentation === '' ? lines : lines.replaceAll(/(?<=^|\n)(?=[^\n])/g, indentation);
}
