import { flagNamed, sortedOptions } from '../flags/flag-parser.ts';
import type { Completion, Option } from '../flags/option.ts';
import { findCommand, optionsOf } from '../program/command.ts';
import type { Commands } from '../program/command.ts';
import type { ProgramCommand, ProgramOptions } from '../program/program.ts';

/** A word that the shell can offer, and what it means. */
type Candidate = readonly [word: string, summary: string];

/** Last line of the output: the shell offers paths, or adds no space after a word. */
type Ending = ':file' | ':folder' | ':nospace';

/**
 * Returns what a shell can offer for the last of `words`, which follow the name of the program: a word and its summary
 * in a line, with a tab between them, and perhaps an {@link Ending}.
 */
export function completionLines(
  program: Pick<ProgramOptions, 'controllers'>,
  commands: Commands,
  words: readonly string[],
): string[] {
  const before = words.slice(0, -1);
  if (before.includes('--')) return [];
  const typed = words.at(-1) ?? '';
  const lines = (all: readonly Candidate[], ending?: Ending) => [
    ...all.filter(([word]) => word.startsWith(typed)).map((each) => each.join('\t')),
    ...(ending ? [ending] : []),
  ];
  const values = (completion: Completion | undefined, isList: boolean, prefix: string) => {
    if (completion === 'file' || completion === 'folder') return lines([], `:${completion}`);
    const all = completion === 'controllers' ? switchable(program.controllers) : (completion ?? []);
    const value = typed.slice(prefix.length);
    const earlier = isList ? value.slice(0, value.lastIndexOf(',') + 1) : '';
    const others = all.filter((word) => !earlier.split(',').includes(word));
    const offers = others.map((word): Candidate => [`${prefix}${earlier}${word}`, '']);
    return lines(offers, isList && offers.length > 0 ? ':nospace' : undefined);
  };
  // The last flag may wait for its value.
  const named = findCommand(commands, [...before, '']);
  const options = optionsOf(named ?? commands[0]);
  const optionOf = (flag: string | undefined) => {
    const [, name = ''] = /^--?(.*)$/.exec(flag ?? '') ?? [];
    const key = name.replaceAll('_', '-');
    const [, option] =
      Object.entries(options).find(
        ([each, { aliases = [] }]) => each === key || aliases.includes(key),
      ) ?? [];
    return option;
  };
  const [prefix = ''] = /^-[^=]*=/.exec(typed) ?? [];
  const previous = optionOf(before.at(-1));
  const option = prefix === '' ? previous : optionOf(prefix.slice(0, -1));
  if (option && (prefix !== '' || option.type !== 'boolean')) {
    const isList = option.type === 'list' || option.type === 'switches';
    const words = option.type === 'boolean' ? ['true', 'false'] : option.completion;
    return values(words, isList, prefix);
  }
  if (typed.startsWith('-')) return lines(flagsOf(options, /^-[^-]/.test(typed) ? '-' : '--'));
  if (named) return values(named.operandCompletion, false, '');
  return lines(commands.map(({ name, summary }: ProgramCommand) => [name, summary]));
}

/** Names as `--controllers` takes them. */
function switchable(controllers: Readonly<Record<string, unknown>>): string[] {
  const names = Object.keys(controllers);
  return [...names, ...names.map((name) => `-${name}`)];
}

/** Flags that require a value end with `=`. */
function flagsOf(options: Readonly<Record<string, Option<unknown>>>, dashes: string): Candidate[] {
  return sortedOptions(options).flatMap(([name, { aliases = [], type, help, hidden }]) =>
    (hidden ? [] : [name, ...aliases]).map((each): Candidate => {
      const isShort = each.length === 1;
      const flag = isShort ? flagNamed(each) : `${dashes}${each}`;
      return [type === 'boolean' || isShort ? flag : `${flag}=`, firstClause(help)];
    }),
  );
}

/** Menus have room for a short text only. */
function firstClause(help: string): string {
  const [clause = help] = help.split(/[.;:,] |: /);
  return clause;
}
