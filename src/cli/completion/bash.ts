import { spellings, valueFlags } from './model.ts';
import type { CompletedCommand, CompletionModel, Candidates } from './model.ts';

/**
 * Returns the script for bash 3.2 and later. Bash splits words at `=` and `:`. The script therefore reads
 * the line itself and returns the part of each proposal after the last separator.
 */
export function bashCompletion(model: CompletionModel): string {
  const { program, commands } = model;
  const name = `_${program.replaceAll(/\W/g, '_')}`;
  const [first] = commands;
  return `# bash completion for ${program}, printed by: ${program} completion bash
# Enable it in this shell: source <(${program} completion bash)
# Enable it in new shells: ${program} completion bash >/etc/bash_completion.d/${program}

${name}() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() current= command= flag= word
  read -ra words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=\${words[\${#words[@]} - 1]}
    unset "words[\${#words[@]} - 1]"
  fi
  for word in "\${words[@]:1}"; do
    if [[ -n $flag ]]; then
      flag=
      continue
    fi
    case $word in
      --) return ;;
      -*=*) ;;
      -*) ${name}_takes_value "$word" && flag=$word ;;
      *) [[ -n $command ]] || command=$word ;;
    esac
  done
  COMPREPLY=()
  if [[ -n $flag ]]; then
    ${name}_offer_value "\${command:-${first.name}}" "$flag" "$current"
  elif [[ $current == -*=* ]]; then
    flag=\${current%%=*}
    ${name}_offer_value "\${command:-${first.name}}" "$flag" "\${current#*=}"
    # Bash splits words at =, unless COMP_WORDBREAKS has no = in it.
    [[ $COMP_WORDBREAKS == *=* ]] || COMPREPLY=("\${COMPREPLY[@]/#/$flag=}")
  elif [[ $current == -* ]]; then
    ${name}_offer_flags "\${command:-${first.name}}" "$current"
  elif [[ -z $command ]]; then
    ${name}_words "$current" ${words(commands.map((each) => each.name))}
  else
    ${name}_offer_operands "$command" "$current"
  fi
}

# Succeeds if the next word is the value of the flag.
${name}_takes_value() {
  ${name}_normalise "$1"
  case $REPLY in
${cases([[valueFlags(model).map(doubleDashed), 'return 0']], 4)}
  esac
  return 1
}

# Sets REPLY to the flag in the form --name.
${name}_normalise() {
  REPLY=\${1#-}
  REPLY=\${REPLY#-}
  REPLY=--\${REPLY//_/-}
}

${name}_offer_flags() {
  case $1 in
${cases(
  commands.map((command) => [[command.name], `${name}_words "$2" ${words(flagsOf(command))}`]),
  4,
)}
  esac
  if [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
}

${name}_offer_value() {
  ${name}_normalise "$2"
  case "$1 $REPLY" in
${cases(valueCases(name, commands), 4)}
  esac
}

${name}_offer_operands() {
  case $1 in
${cases(operandCases(name, commands), 4)}
  esac
}

# Offers the words after the first argument that start with the first argument.
${name}_words() {
  local typed=$1 word
  shift
  for word in "$@"; do
    [[ $word != "$typed"* ]] || COMPREPLY+=("$word")
  done
  ${name}_after_break "$typed"
}

# Offers words for the last element of a comma-separated list.
${name}_list() {
  local typed=$1 word before=
  shift
  [[ $typed != *,* ]] || before=\${typed%,*},
  for word in "$@"; do
    [[ $before$word != "$typed"* || ,$before == *",$word,"* ]] || COMPREPLY+=("$before$word")
  done
  compopt -o nospace 2>/dev/null
  ${name}_after_break "$typed"
}

${name}_files() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$2"))
  ${name}_after_break "$2"
}

# Removes the part of the proposals that bash does not replace: up to the last = or :.
${name}_after_break() {
  local broken= index
  if [[ $COMP_WORDBREAKS == *=* && $1 == *=* ]]; then broken=\${1%=*}=; fi
  if [[ $COMP_WORDBREAKS == *:* && \${1#"$broken"} == *:* ]]; then broken=\${1%:*}:; fi
  for index in "\${!COMPREPLY[@]}"; do
    COMPREPLY[index]=\${COMPREPLY[index]#"$broken"}
  done
}

complete -F ${name} ${program}`;
}

/** Flags that require a value end with `=`. */
function flagsOf({ flags }: CompletedCommand): string[] {
  return flags.flatMap((flag) =>
    spellings(flag).map((spelling) =>
      flag.isBoolean || !spelling.startsWith('--') ? spelling : `${spelling}=`,
    ),
  );
}

function valueCases(name: string, commands: readonly CompletedCommand[]): Case[] {
  const byAction = new Map<string, string[]>();
  for (const command of commands) {
    for (const flag of command.flags) {
      const action = actionOf(name, flag.value, '$3');
      const patterns = flag.names.map((each) => `${command.name} ${doubleDashed(each)}`);
      if (action !== '') byAction.set(action, [...(byAction.get(action) ?? []), ...patterns]);
    }
  }
  return Array.from(byAction, ([action, patterns]) => [patterns, action]);
}

function operandCases(name: string, commands: readonly CompletedCommand[]): Case[] {
  return commands
    .map(({ name: command, operands }): Case => [[command], actionOf(name, operands, '$2')])
    .filter(([, action]) => action !== '');
}

function actionOf(name: string, candidatesOf: Candidates, typed: string): string {
  switch (candidatesOf.kind) {
    case 'nothing':
      return '';
    case 'files':
      return `${name}_files -f "${typed}"`;
    case 'folders':
      return `${name}_files -d "${typed}"`;
    case 'words':
      return `${name}_${candidatesOf.isList ? 'list' : 'words'} "${typed}" ${words(candidatesOf.words)}`;
  }
}

type Case = readonly [patterns: readonly string[], action: string];

function cases(all: readonly Case[], indent: number): string {
  const margin = ' '.repeat(indent);
  return all
    .map(([patterns, action]) => `${margin}${patterns.map(quoted).join(' | ')}) ${action} ;;`)
    .join('\n');
}

function doubleDashed(name: string): string {
  return `--${name}`;
}

function words(all: readonly string[]): string {
  return all.map(quoted).join(' ');
}

/** Quotes one word for the shell. */
function quoted(word: string): string {
  return /^[\w=,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
