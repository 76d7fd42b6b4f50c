import { COMPLETION_FLAG } from '../flags/flag-parser.ts';

/**
 * Completion scripts by shell. Each asks the program for the words to offer. Those of yargs offer no value after `=`, no
 * files in fish, and need bash 4.
 */
export const COMPLETION_SCRIPTS: ReadonlyMap<string, (program: string) => string> = new Map([
  ['bash', bashScript],
  ['zsh', zshScript],
  ['fish', fishScript],
]);

/** For bash 3.2 and later. Bash splits words at `=` and `:`, so the script reads the line itself. */
function bashScript(program: string): string {
  const name = functionName(program);
  return `# bash completion for ${program}, printed by: ${program} completion bash
# Enable it in this shell: source <(${program} completion bash)
# Enable it in new shells: ${program} completion bash >/etc/bash_completion.d/${program}

${name}() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() current ending= word prefix= broken=
  read -ra words <<<"$line"
  [[ $line != *[[:space:]] ]] || words+=('')
  current=\${words[\${#words[@]} - 1]}
  COMPREPLY=()
  while IFS=$'\\t' read -r word _; do
    case $word in
      :*) ending=$word ;;
      *) COMPREPLY+=("$word") ;;
    esac
  done < <("\${words[0]}" ${COMPLETION_FLAG} "\${words[@]:1}" 2>/dev/null)
  [[ $current != -*=* ]] || prefix=\${current%%=*}=
  local IFS=$'\\n'
  case $ending in
    :file) COMPREPLY=($(compgen -f -P "$prefix" -- "\${current#"$prefix"}")) ;;
    :folder) COMPREPLY=($(compgen -d -P "$prefix" -- "\${current#"$prefix"}")) ;;
  esac
  case $ending in
    :file | :folder) compopt -o filenames 2>/dev/null ;;
    :nospace) compopt -o nospace 2>/dev/null ;;
    *) [[ \${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null ;;
  esac
  # Bash does not replace what is before the last = or :.
  if [[ $COMP_WORDBREAKS == *=* && $current == *=* ]]; then broken=\${current%=*}=; fi
  if [[ $COMP_WORDBREAKS == *:* && \${current#"$broken"} == *:* ]]; then broken=\${current%:*}:; fi
  COMPREPLY=("\${COMPREPLY[@]#"$broken"}")
}

complete -F ${name} ${program}`;
}

/** For zsh, to be loaded by `compinit` or sourced after it. */
function zshScript(program: string): string {
  const name = functionName(program);
  return `#compdef ${program}
# zsh completion for ${program}, printed by: ${program} completion zsh
# Enable it in this shell: source <(${program} completion zsh)
# Enable it in new shells: ${program} completion zsh >"\${fpath[1]}/_${program}"

${name}() {
  local -a lines offers joined
  local line word
  lines=("\${(@f)$("$words[1]" ${COMPLETION_FLAG} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  case $lines[-1] in
    :file) compset -P '-*='; _files; return ;;
    :folder) compset -P '-*='; _files -/; return ;;
  esac
  for line in $lines; do
    word=\${line%%$'\\t'*}
    case $word in
      '') ;;
      :*) joined=($offers) offers=() ;;
      *=) joined+=("\${word//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) offers+=("\${word//:/\\\\:}:\${line#*$'\\t'}") ;;
    esac
  done
  _describe ${program} offers -- joined -S ''
}

if [[ \${funcstack[1]} == _${program} ]]; then
  ${name} "$@"
else
  compdef ${name} ${program}
fi`;
}

/** For fish 3.0 and later. */
function fishScript(program: string): string {
  const name = `_${functionName(program)}`;
  return `# fish completion for ${program}, printed by: ${program} completion fish
# Enable it in this shell: ${program} completion fish | source
# Enable it in new shells: ${program} completion fish >~/.config/fish/completions/${program}.fish

function ${name}
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] ${COMPLETION_FLAG} $words[2..-1] "$current" 2>/dev/null)
    set -l prefix (string match -r -- '^-[^=]*=' "$current")
    set -l value (string replace -r -- '^-[^=]*=' '' "$current")
    switch "$lines[-1]"
        case :file
            printf '%s\\n' "$prefix"(complete -C"'' $value")
        case :folder
            printf '%s\\n' "$prefix"(complete -C"'' $value" | string match -r '^[^\\t]*/')
        case '*'
            string match -v ':*' -- $lines
    end
end

complete -c ${program} -f -a '(${name})'`;
}

function functionName(program: string): string {
  return `_${program.replaceAll(/\W/g, '_')}`;
}
