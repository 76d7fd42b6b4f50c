/** What a POSIX shell separates words by: a no-break space is a character like any other. */
const BLANK = /[ \t\n]/;

/** The words of a command, or what is wrong with it. */
export type Command =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'malformed'; readonly problem: string };

/**
 * Splits a command into words as a POSIX shell does: blanks separate, single quotes keep everything,
 * double quotes everything but a backslash before `"`, `\`, `$` or a backtick, a backslash keeps the
 * next character. Nothing is expanded: the words go to the container as they are.
 */
export function parseCommand(text: string): Command {
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
  if (words.length === 0 || words[0] === '') return malformed('it has no word');
  return { kind: 'words', words };
}

function escapes(quote: '"' | "'" | undefined, next: string): boolean {
  return quote === undefined || (quote === '"' && next !== '' && '"\\$`'.includes(next));
}

function malformed(problem: string): Command {
  return { kind: 'malformed', problem };
}
