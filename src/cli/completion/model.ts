import { optionsOf } from '../program/command.ts';
import type { Commands } from '../program/command.ts';
import type { ProgramCommand } from '../program/program.ts';
import { flagNamed, sortedOptions } from '../flags/flag-parser.ts';
import type { Completion, Option } from '../flags/option.ts';

/** Data of a completion script: the commands and their flags. */
export interface CompletionModel {
  readonly program: string;
  /** The first one is the default command. */
  readonly commands: readonly [CompletedCommand, ...CompletedCommand[]];
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletedFlag[];
  /** Values of positional arguments. */
  readonly operands: Candidates;
}

export interface CompletedFlag {
  /** Without dashes; the primary name first. */
  readonly names: readonly string[];
  readonly summary: string;
  /** Boolean flags take a value after `=` only. */
  readonly isBoolean: boolean;
  readonly value: Candidates;
}

/** Values that a shell can offer. */
export type Candidates =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'files' }
  | { readonly kind: 'folders' }
  | { readonly kind: 'words'; readonly words: readonly string[]; readonly isList: boolean };

/**
 * Returns the completion data of the commands.
 *
 * @param controllers values of `--controllers`
 */
export function completionModel(
  program: string,
  commands: Commands,
  controllers: readonly string[],
): CompletionModel {
  const [first, ...others] = commands;
  const completed = (command: ProgramCommand): CompletedCommand => ({
    name: command.name,
    summary: command.summary,
    flags: sortedOptions(optionsOf(command))
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

/** Menus have room for a short text only. */
function firstClause(help: string): string {
  const [clause = help] = help.split(/[.;:,] |: /);
  return clause;
}

/** Returns all spellings of a flag: `--kubeconfig`, `-v`. */
export function spellings({ names }: CompletedFlag): string[] {
  return names.map(flagNamed);
}

/** Returns the flags that take the next word as their value in every command that has them. */
export function valueFlags({ commands }: CompletionModel): string[] {
  const all = commands.flatMap(({ flags }) => flags);
  const booleans = new Set(all.filter(({ isBoolean }) => isBoolean).flatMap(({ names }) => names));
  return [...new Set(all.flatMap(({ names }) => names))].filter((name) => !booleans.has(name));
}
