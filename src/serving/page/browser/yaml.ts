/** Texts that YAML reads as text without quotes. */
const PLAIN = /^[A-Za-z_/][\w./@-]*(?: [\w./@-]+)*$/;

/** Texts that YAML 1.1 or 1.2 reads as another type. */
const TYPED = /^(?:true|false|null|yes|no|on|off|y|n|~)$/i;

/** Formats a JSON value as YAML, in the block style of kubectl. */
export function yaml(value: unknown): string {
  return [...lines(value, '')].join('\n');
}

function* lines(value: unknown, indent: string): Iterable<string> {
  if (isEmptyOrScalar(value)) {
    yield `${indent}${scalar(value)}`;
  } else if (Array.isArray(value)) {
    for (const item of value as readonly unknown[]) {
      let start = `${indent}- `;
      for (const line of lines(item, `${indent}  `)) {
        yield start === '' ? line : `${start}${line.trimStart()}`;
        start = '';
      }
    }
  } else {
    for (const [name, member] of Object.entries(value)) yield* entry(name, member, indent);
  }
}

function* entry(name: string, member: unknown, indent: string): Iterable<string> {
  const key = `${indent}${scalar(name)}:`;
  if (typeof member === 'string' && isBlock(member)) {
    const isEnded = member.endsWith('\n');
    yield `${key} |${isEnded ? '' : '-'}`;
    for (const line of (isEnded ? member.slice(0, -1) : member).split('\n')) {
      yield line === '' ? '' : `${indent}  ${line}`;
    }
  } else if (isEmptyOrScalar(member)) {
    yield `${key} ${scalar(member)}`;
  } else {
    yield key;
    // As kubectl does, a list has the indentation of its name.
    yield* lines(member, Array.isArray(member) ? indent : `${indent}  `);
  }
}

function isEmptyOrScalar(value: unknown): value is string | number | boolean | null | undefined {
  return typeof value !== 'object' || value === null || Object.keys(value).length === 0;
}

function isBlock(text: string): boolean {
  return (
    text.includes('\n') &&
    /^[^\s]/.test(text) &&
    !text.endsWith('\n\n') &&
    !/[^\P{C}\n]/u.test(text)
  );
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') {
    if (typeof value === 'object' && value !== null) return Array.isArray(value) ? '[]' : '{}';
    return JSON.stringify(value);
  }
  return PLAIN.test(value) && !TYPED.test(value) ? value : JSON.stringify(value);
}
