import { flagNamed } from '../flags/flag-parser.ts';
import { spellings, valueFlags } from './model.ts';
import type { CompletedCommand, CompletedFlag, CompletionModel, Candidates } from './model.ts';

/** Returns the script for zsh, to be loaded by `compinit` or sourced after it. */
export function zshCompletion(model: CompletionModel): string {
  const { program, commands } = model;
  const name = `_${program.replaceAll(/\W/g, '_')}`;
  const [first] = commands;
  return `#compdef ${program}
# zsh completion for ${program}, printed by: ${program} completion zsh
# Enable it in this shell: source <(${program} completion zsh)
# Enable it in new shells: ${program} completion zsh >"\${fpath[1]}/_${program}"

${name}() {
  local command word flag
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $flag ]]; then
      flag=
      continue
    fi
    case $word in
      -*=*) ;;
      (${valueFlags(model).map(flagNamed).join('|')}) flag=$word ;;
      -*) ;;
      *) command=$word; break ;;
    esac
  done
  if [[ -z $command ]]; then
    local -a commands
    commands=(
${commands.map((each) => `      ${single(`${each.name}:${each.summary}`)}`).join('\n')}
    )
    _arguments -S -A '-*' \\
${specsOf(first, 6)}      '1:command:{ _describe command commands }' \\
      '*:: :'
    return
  fi
  case $command in
${commands.map((command) => caseOf(command)).join('\n')}
  esac
}

if [[ \${funcstack[1]} == _${program} ]]; then
  ${name} "$@"
else
  compdef ${name} ${program}
fi`;
}

function caseOf(command: CompletedCommand): string {
  return `    ${command.name})
      _arguments -S \\
${specsOf(command, 8)}        '1: :' \\
        '*${argument('operand', command.operands)}'
      ;;`;
}

/** Returns lines for `_arguments`, each with a backslash at the end. */
function specsOf({ flags }: CompletedCommand, indent: number): string {
  const margin = ' '.repeat(indent);
  return flags
    .flatMap((flag) => spellings(flag).map((spelling) => specOf(flag, spelling)))
    .map((spec) => `${margin}${single(spec)} \\\n`)
    .join('');
}

function specOf(flag: CompletedFlag, spelling: string): string {
  const summary = `[${flag.summary.replaceAll(/[\\[\]]/g, String.raw`\$&`)}]`;
  const [name = ''] = flag.names;
  if (flag.isBoolean) return `${spelling}=-${summary}:${argument(name, flag.value)}`;
  // Short flags accept a value after = too.
  return `${spelling}=${summary}${argument(name, flag.value)}`;
}

/** Returns the argument part of an `_arguments` specification. */
function argument(name: string, candidatesOf: Candidates): string {
  return `:${name}:${action(candidatesOf)}`;
}

function action(candidatesOf: Candidates): string {
  switch (candidatesOf.kind) {
    case 'nothing':
      return ' ';
    case 'files':
      return '_files';
    case 'folders':
      return '_files -/';
    case 'words':
      return candidatesOf.isList
        ? `_sequence compadd - ${candidatesOf.words.join(' ')}`
        : `(${candidatesOf.words.join(' ')})`;
  }
}

function single(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
