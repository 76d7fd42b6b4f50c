import type { Command } from '../command.ts';
import { flagNamed, sortedOptions } from '../flags/flag-parser.ts';
import type { Completion, Option } from '../flags/option.ts';

/** What a shell is told of a command line: the commands, their flags, and what goes with each. */
export interface CompletionModel {
  readonly program: string;
  /** The first is the one that runs without a name. */
  readonly commands: readonly [CompletedCommand, ...CompletedCommand[]];
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** What goes with the command besides flags. */
  readonly operands: Candidates;
}

export interface CompletedFlag {
  /** Without dashes; the first is the flag's own. */
  readonly names: readonly string[];
  readonly summary: string;
  /** It means something without a value, and takes one after `=` only. */
  readonly isBoolean: boolean;
  readonly value: Candidates;
}

/** What may stand somewhere. */
export type Candidates =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'files' }
  | { readonly kind: 'folders' }
  | { readonly kind: 'words'; readonly words: readonly string[]; readonly isList: boolean };

/** @param controllers names that `--controllers` knows */
export function completionModel(
  program: string,
  commands: readonly [Command, ...Command[]],
  controllers: readonly string[],
): CompletionModel {
  const [first, ...others] = commands;
  const completed = (command: Command): CompletedCommand => ({
    name: command.name,
    summary: command.summary,
    flags: sortedOptions(command.options)
      .filter(([, { hidden }]) => !hidden)
      .map(([name, option]) => completedFlag(name, option, controllers)),
    operands: candidatesOf(command.operandCompletion, false, controllers),
  });
  return { program, commands: [completed(first), ...others.map(completed)] };
}

function completedFlag(
  name: string,
  option: Option<unknown>,
  controllers: readonly string[],
): CompletedFlag {
  const isBoolean = option.type === 'boolean';
  const isList = option.type === 'list' || option.type === 'switches';
  return {
    names: [name, ...(option.aliases ?? [])],
    summary: firstClause(option.help),
    isBoolean,
    value: isBoolean
      ? { kind: 'words', words: ['true', 'false'], isList: false }
      : candidatesOf(option.completion, isList, controllers),
  };
}

function candidatesOf(
  completion: Completion | undefined,
  isList: boolean,
  controllers: readonly string[],
): Candidates {
  switch (completion) {
    case undefined:
      return { kind: 'nothing' };
    case 'file':
      return { kind: 'files' };
    case 'folder':
      return { kind: 'folders' };
    case 'controllers':
      return {
        kind: 'words',
        words: [...controllers, ...controllers.map((name) => `-${name}`)],
        isList,
      };
    default:
      return { kind: 'words', words: completion, isList };
  }
}

/** A line of a menu has little room. */
function firstClause(help: string): string {
  const [clause = help] = help.split(/[.;:,] |: /);
  return clause;
}

/** `--kubeconfig`, `-v`: all spellings of a flag. */
export function spellings({ names }: CompletedFlag): string[] {
  return names.map(flagNamed);
}

/** Names of the flags whose value may be the next word, to every command that knows them. */
export function valueFlags({ commands }: CompletionModel): string[] {
  const all = commands.flatMap(({ flags }) => flags);
  const booleans = new Set(all.filter(({ isBoolean }) => isBoolean).flatMap(({ names }) => names));
  return [...new Set(all.flatMap(({ names }) => names))].filter((name) => !booleans.has(name));
}
