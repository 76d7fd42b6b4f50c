import type { FieldError } from '../../api/field-error.ts';
import type { At, AtSpec } from '../../api/generated/at.ts';
import type { DeepReadonly, Draft } from '../../api/object.ts';
import { invalid } from '../../webhook/field-errors.ts';
import { MAX_NAME_LENGTH, shown, specProblem } from '../spec-problem.ts';
import type { SpecRules } from '../spec-problem.ts';
import { podName } from './pod.ts';

const RULES: SpecRules<AtSpec> = { schedule: { type: 'string' }, command: { type: 'string' } };

/** The schedule and the command of an At, or why they are invalid. */
export type ParsedSpec =
  | {
      readonly kind: 'valid';
      /** Milliseconds since the epoch. */
      readonly dueMs: number;
      readonly words: readonly string[];
    }
  /** `problem` is for the conditions of an At that is stored, `error` for the response to a request. */
  | { readonly kind: 'invalid'; readonly problem: string; readonly error: FieldError };

export function parseSpec(at: DeepReadonly<Draft<At>>): ParsedSpec {
  const problem = specProblem<AtSpec>(at.spec, RULES);
  if (problem !== undefined) return { kind: 'invalid', problem, error: invalid('spec', problem) };
  const { schedule, command } = at.spec;
  const dueMs = parseSchedule(schedule);
  if (dueMs === undefined) {
    return invalidField('spec.schedule', schedule, 'is not an RFC 3339 time');
  }
  const parsed = parseCommand(command);
  if (parsed.kind === 'malformed') {
    const detail = `cannot be split into words: ${parsed.problem}`;
    return invalidField('spec.command', command, detail);
  }
  const { length } = podName(at);
  if (length > MAX_NAME_LENGTH) {
    const long = `The Pod's name would have ${length} characters, ${MAX_NAME_LENGTH} are allowed; use an At with a shorter name`;
    return { kind: 'invalid', problem: long, error: invalid('metadata.name', long) };
  }
  return { kind: 'valid', dueMs, words: parsed.words };
}

function invalidField(field: string, value: string, detail: string): ParsedSpec {
  const problem = `${field} ${shown(value)} ${detail}`;
  return { kind: 'invalid', problem, error: invalid(field, detail) };
}

/** Characters that separate words in a POSIX shell. A no-break space is not one. */
const BLANK = /[ \t\n]/;

/** The words of a command, or why it cannot be split into words. */
export type AtCommand =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'malformed'; readonly problem: string };

/**
 * Splits a command into words as a POSIX shell does. Blanks separate words; single quotes keep all
 * characters; double quotes keep all but a backslash before `"`, `\`, `$` or a backtick; a backslash
 * keeps the next character. Nothing is expanded.
 */
export function parseCommand(text: string): AtCommand {
  const words: string[] = [];
  let word: string | undefined;
  let quote: '"' | "'" | undefined;
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (quote === undefined && BLANK.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (character === quote) {
      quote = undefined;
    } else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character;
      word ??= '';
    } else if (character === '\\' && escapes(quote, text.charAt(at + 1))) {
      if (++at >= text.length) return malformed('it ends in a backslash that escapes nothing');
      word = (word ?? '') + text.charAt(at);
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) return malformed(`a quote ${quote} is opened and not closed`);
  if (word !== undefined) words.push(word);
  if (words.length === 0 || words[0] === '') return malformed('it has no words');
  return { kind: 'words', words };
}

function escapes(quote: '"' | "'" | undefined, next: string): boolean {
  return quote === undefined || (quote === '"' && next !== '' && '"\\$`'.includes(next));
}

function malformed(problem: string): AtCommand {
  return { kind: 'malformed', problem };
}

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/**
 * Parses an RFC 3339 date and time. A leap second counts as the second after it.
 *
 * @returns milliseconds since the epoch, rounded up so that no command starts early; undefined if the
 * text is malformed or the calendar does not have the day
 */
export function parseSchedule(text: string): number | undefined {
  const match = RFC_3339.exec(text);
  if (!match) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', zoneHour, zoneMinute] = match;
  const numbers = [year, month, day, hour, minute, second].map(Number);
  const [y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0] = numbers;
  const date = new Date(0);
  date.setUTCFullYear(y, mo - 1, d);
  const isInCalendar = date.getUTCMonth() === mo - 1 && date.getUTCDate() === d;
  if (!isInCalendar || mo < 1 || h > 23 || mi > 59 || s > 60) return undefined;
  if (Number(zoneHour ?? 0) > 23 || Number(zoneMinute ?? 0) > 59) return undefined;
  const zone = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * 60_000;
  const isWest = /-\d{2}:\d{2}$/.test(text);
  const finer = /[1-9]/.test(fraction.slice(3)) ? 1 : 0;
  const fractionMs = Number(fraction.slice(0, 3).padEnd(3, '0')) + finer;
  return date.getTime() + ((h * 60 + mi) * 60 + s) * 1000 + fractionMs + (isWest ? zone : -zone);
}
