/** A requirement on a field. A selector matches if all its requirements do. */
export interface FieldRequirement {
  /** Path with dots: `metadata.name`. */
  readonly field: string;
  readonly operator: '=' | '!=';
  readonly value: string;
}

/**
 * Parses a field selector: `metadata.name=web,status.phase!=Running`. `\` escapes `\`, `,` and `=` in a
 * value. An empty string selects everything.
 *
 * @throws {SyntaxError} if a term has no operator or an invalid escape
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  return splitTerms(text)
    .filter((term) => term !== '')
    .map((term) => {
      const match = /^(.*?)(!=|==|=)(.*)$/s.exec(term);
      const [, field, operator, value] = match ?? [];
      if (field === undefined || operator === undefined || value === undefined) {
        throw new SyntaxError(`invalid selector: '${text}'; can't understand '${term}'`);
      }
      return { field, operator: operator === '!=' ? '!=' : '=', value: unescape(value) };
    });
}

/** Reports whether all requirements match. `valueOf` returns the value of a field, or an empty string. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  valueOf: (field: string) => string,
): boolean {
  return requirements.every(
    ({ field, operator, value }) => (valueOf(field) === value) === (operator === '='),
  );
}

function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === ',') {
      terms.push(text.slice(start, at));
      start = at + 1;
    }
  }
  return [...terms, text.slice(start)];
}

function unescape(value: string): string {
  return value.replaceAll(/\\([^]?)|=/gu, (found: string, escaped?: string) => {
    if (found === '=') {
      throw new SyntaxError('invalid field selector: unescaped character in value: 61');
    }
    if (escaped && '\\,='.includes(escaped)) return escaped;
    throw new SyntaxError(`invalid field selector: invalid escape sequence: ${found}`);
  });
}
