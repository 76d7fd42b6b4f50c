import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { equalJson } from '../../src/api/equal.ts';
import { isRecord } from '../../src/util/values.ts';
import type { Answer, Target } from './targets.ts';

/** Returns the inputs of a target that are kept: seeds, and those for which a parser was wrong. */
export function corpusOf({ name, form }: Target): Buffer[] {
  const file = join(import.meta.dirname, 'corpus', `${name}.json`);
  const texts = JSON.parse(readFileSync(file, 'utf8')) as string[];
  return texts.map((text) => Buffer.from(text, form === 'bytes' ? 'base64' : 'utf8'));
}

/** Returns an input in the form of the corpus. */
export function corpusText({ form }: Target, input: Buffer): string {
  return JSON.stringify(input.toString(form === 'bytes' ? 'base64' : 'utf8'));
}

/** Returns the answer of a target, or an error that its callers do not expect. */
export function answerOf(target: Target, input: Buffer): Answer | Error {
  try {
    return target.answer(input);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** Returns how an answer differs from that of the reference; undefined if they agree. */
export function disagreement(
  { agreement = 'equal', isUnordered = false }: Target,
  answer: Answer,
  reference: Answer,
): string | undefined {
  if (!answer.isAccepted) {
    return reference.isAccepted && agreement === 'equal'
      ? `is rejected (${answer.why}), and ${JSON.stringify(reference.value)} for the reference`
      : undefined;
  }
  if (!reference.isAccepted) {
    if (agreement === 'common') return undefined;
    return `is ${JSON.stringify(answer.value)}, and rejected by the reference (${reference.why})`;
  }
  const isEqual = isUnordered
    ? equalJson(sorted(answer.value), sorted(reference.value))
    : equalJson(plain(answer.value), plain(reference.value));
  return isEqual
    ? undefined
    : `is ${JSON.stringify(answer.value)}, and ${JSON.stringify(reference.value)} for the reference`;
}

/** Sorts a list. */
function sorted(value: unknown): unknown {
  return Array.isArray(value) ? value.map((each) => JSON.stringify(plain(each))).toSorted() : value;
}

/** Removes what has the same meaning as nothing, such as the empty objects and null that Go writes for structs. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map((item: unknown) => (isEmpty(item) ? null : plain(item)));
  }
  if (!isRecord(value)) return value;
  const members = Object.entries(value)
    .map(([name, member]) => [name, plain(member)] as const)
    .filter(([, member]) => member !== null && member !== '' && !isEmpty(member))
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members);
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}
