import { flagNamed } from '../flags/flag-parser.ts';
import { valueFlags } from './model.ts';
import type { CompletedCommand, CompletedFlag, CompletionModel, Candidates } from './model.ts';

/** Returns the script for fish 3.0 and later. */
export function fishCompletion(model: CompletionModel): string {
  const { program, commands } = model;
  const name = `__${program.replaceAll(/\W/g, '_')}`;
  const [first] = commands;
  const named = commands.map((command) =>
    complete(program, [
      `-n ${name}_needs_command`,
      '-f',
      `-a ${command.name}`,
      `-d ${single(command.summary)}`,
    ]),
  );
  const flags = commands.flatMap((command) =>
    command.flags.map((flag) =>
      complete(program, [`-n ${single(`${name}_is ${command.name}`)}`].concat(flagOf(flag))),
    ),
  );
  const operands = commands.flatMap((command) =>
    operandsOf(command).map((candidatesOf) =>
      complete(program, [`-n ${single(`${name}_named ${command.name}`)}`, candidatesOf]),
    ),
  );
  return `# fish completion for ${program}, printed by: ${program} completion fish
# Enable it in this shell: ${program} completion fish | source
# Enable it in new shells: ${program} completion fish >~/.config/fish/completions/${program}.fish

# Prints the command on the line before the cursor, if there is one.
function ${name}_command
    set -l tokens (commandline -opc)
    set -l skip 0
    for token in $tokens[2..-1]
        if test $skip -eq 1
            set skip 0
            continue
        end
        switch $token
            case '-*=*'
            case ${valueFlags(model).map(flagNamed).join(' ')}
                set skip 1
            case '-*'
            case '*'
                echo $token
                return
        end
    end
end

function ${name}_needs_command
    set -l command (${name}_command)
    test -z "$command"
end

# Succeeds if the command is the given one.
function ${name}_named
    set -l command (${name}_command)
    test "$command" = $argv[1]
end

# Succeeds if the command is the given one; the default command is ${first.name}.
function ${name}_is
    set -l command (${name}_command)
    test -n "$command"; or set command ${first.name}
    test $command = $argv[1]
end

complete -c ${program} -f
${[...named, ...flags, ...operands].join('\n')}`;
}

function complete(program: string, words: readonly string[]): string {
  return ['complete', `-c ${program}`, ...words].join(' ');
}

function flagOf(flag: CompletedFlag): string[] {
  const names = flag.names.map((each) => (each.length === 1 ? `-s ${each}` : `-l ${each}`));
  return [...names, ...valueOf(flag), `-d ${single(flag.summary)}`];
}

function valueOf({ isBoolean, value }: CompletedFlag): string[] {
  // Without -r, a value is accepted after = only.
  if (isBoolean) return ['-f'];
  switch (value.kind) {
    case 'nothing':
      return ['-x'];
    case 'files':
      return ['-r', '-F'];
    case 'folders':
      return ['-x', `-a '(__fish_complete_directories (commandline -ct))'`];
    case 'words':
      return ['-x', wordsOf(value)];
  }
}

function operandsOf({ operands }: CompletedCommand): string[] {
  switch (operands.kind) {
    case 'nothing':
      return [];
    case 'files':
      return ['-F'];
    case 'folders':
      return [`-a '(__fish_complete_directories (commandline -ct))'`];
    case 'words':
      return [wordsOf(operands)];
  }
}

function wordsOf({ words, isList }: Extract<Candidates, { kind: 'words' }>): string {
  const list = words.join(' ');
  return isList
    ? `-a ${single(`(__fish_complete_list , "printf '%s\\n' ${list}")`)}`
    : `-a ${single(list)}`;
}

/** Fish has two escapes within single quotes. */
function single(text: string): string {
  return `'${text.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
}
