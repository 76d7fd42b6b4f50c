import { utf8Length } from '../util/bytes.ts';

/** A rule for the names of objects. */
export type NameFormat =
  'dns1123Subdomain' | 'dns1123SubdomainCaseless' | 'dns1123Label' | 'dns1035Label' | 'pathSegment';

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';

/** The rules and messages of a name format. */
interface NameRule {
  readonly pattern: RegExp;
  readonly text: string;
  readonly source: string;
  readonly examples: readonly string[];
  readonly maxLength: number;
}

const SUBDOMAIN_RULE: NameRule = {
  pattern: new RegExp(`^${SUBDOMAIN}$`),
  text: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  source: SUBDOMAIN,
  examples: ['example.com'],
  maxLength: 253,
};
/** Names of drivers, in which upstream permits capital letters. */
const CASELESS_SUBDOMAIN_RULE: NameRule = {
  pattern: new RegExp(`^${SUBDOMAIN}$`, 'i'),
  text: "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
  source: SUBDOMAIN,
  examples: ['Example.com'],
  maxLength: 253,
};
const LABEL_RULE: NameRule = {
  pattern: new RegExp(`^${LABEL}$`),
  text: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
  source: LABEL,
  examples: ['my-name', '123-abc'],
  maxLength: 63,
};
const LABEL_1035_RULE: NameRule = {
  pattern: new RegExp(`^${LABEL_1035}$`),
  text: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
  source: LABEL_1035,
  examples: ['my-name', 'abc-123'],
  maxLength: 63,
};
const QUALIFIED_NAME_RULE: NameRule = {
  pattern: new RegExp(`^${QUALIFIED}$`),
  text: "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  source: QUALIFIED,
  examples: ['MyName', 'my.name', '123-abc'],
  maxLength: 63,
};
const LABEL_VALUE_RULE: NameRule = {
  pattern: new RegExp(`^(${QUALIFIED})?$`),
  text: "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
  source: `(${QUALIFIED})?`,
  examples: ['MyValue', 'my_value', '12345'],
  maxLength: 63,
};

/**
 * Validates a name. Returns upstream's messages; empty if it is valid.
 *
 * @param unit of the maximum length in the message: declared rules have bytes
 */
export function nameProblems(
  name: string,
  format: NameFormat,
  unit: 'bytes' | 'characters' = 'characters',
): string[] {
  switch (format) {
    case 'dns1123Subdomain':
      return problems(name, SUBDOMAIN_RULE, unit);
    case 'dns1123SubdomainCaseless':
      return problems(name, CASELESS_SUBDOMAIN_RULE, 'bytes');
    case 'dns1123Label':
      return problems(name, LABEL_RULE, unit);
    case 'dns1035Label':
      return problems(name, LABEL_1035_RULE, unit);
    case 'pathSegment': {
      if (name === '.' || name === '..') return [`may not be '${name}'`];
      return forbiddenCharacters(name);
    }
  }
}

/** Validates the beginning of names that the server completes. */
export function namePrefixProblems(prefix: string, format: NameFormat): string[] {
  if (format === 'pathSegment') return forbiddenCharacters(prefix);
  // As upstream, which replaces the last two characters of a name that ends with a dash.
  return nameProblems(prefix.replace(/.-$/s, 'a'), format);
}

function forbiddenCharacters(segment: string): string[] {
  return ['/', '%']
    .filter((character) => segment.includes(character))
    .map((character) => `may not contain '${character}'`);
}

export function labelValueProblems(value: string): string[] {
  return problems(value, LABEL_VALUE_RULE);
}

/** Counts bytes in both cases; upstream's message for object names calls them characters. */
function problems(name: string, rule: NameRule, unit: 'bytes' | 'characters' = 'bytes'): string[] {
  const found: string[] = [];
  if (utf8Length(name) > rule.maxLength) found.push(tooLong(rule, unit));
  // A very long name is not matched, because the expressions backtrack.
  const isShort = name.length <= 10 * rule.maxLength;
  if (isShort && rule.pattern.test(name)) return found;
  const hasOnlyDots = isShort && rule === LABEL_RULE && SUBDOMAIN_RULE.pattern.test(name);
  found.push(hasOnlyDots ? 'must not contain dots' : mismatch(rule));
  return found;
}

function tooLong({ maxLength }: NameRule, unit: string): string {
  return `must be no more than ${maxLength} ${unit}`;
}

function mismatch({ text, examples, source }: NameRule): string {
  const shown = examples.map((example) => `'${example}', `).join(' or ');
  return `${text} (e.g. ${shown}regex used for validation is '${source}')`;
}

/** Most qualified names: those without repeated separators. */
const USUAL_QUALIFIED_NAME =
  /^(?:[a-z0-9]+(?:[-.][a-z0-9]+)*\/)?[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*$/;

/** Validates a qualified name `[prefix/]name`, the key of a label or annotation. */
export function qualifiedNameProblems(key: string): string[] {
  if (key.length <= QUALIFIED_NAME_RULE.maxLength && USUAL_QUALIFIED_NAME.test(key)) return [];
  const parts = key.split('/');
  const name = parts.at(-1) ?? '';
  if (parts.length > 2) {
    return [
      `a valid label key ${mismatch(QUALIFIED_NAME_RULE)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const found: string[] = [];
  if (parts.length === 2) {
    const prefix = parts[0] ?? '';
    if (prefix === '') found.push('prefix part must be non-empty');
    else for (const why of problems(prefix, SUBDOMAIN_RULE)) found.push(`prefix part ${why}`);
  }
  if (name === '') found.push('name part must be non-empty');
  for (const why of problems(name, QUALIFIED_NAME_RULE)) found.push(`name part ${why}`);
  return found;
}

/** Without vowels and look-alikes, so that a suffix is never a word. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const LONGEST_GENERATED_NAME = 63;

/** Returns `base` with a random suffix. */
export function generatedName(base: string, random: () => number): string {
  let suffix = '';
  for (let length = 0; length < SUFFIX_LENGTH; length++) {
    suffix += SUFFIX_ALPHABET[Math.floor(random() * SUFFIX_ALPHABET.length)];
  }
  return base.slice(0, LONGEST_GENERATED_NAME - SUFFIX_LENGTH) + suffix;
}
