import type { JsonSchema } from '../json-schema.ts';
import { declaredField } from '../json-schema.ts';

/**
 * The path that a rule reports (`.spec.list`, `['a.b']`), as errors write it. Only fields and keys of
 * maps can be named.
 *
 * @returns undefined if it is none that leads to a field of `schema`
 */
export function fieldPathOf(text: string, schema: JsonSchema): string | undefined {
  let path = '';
  let current: JsonSchema | undefined = schema;
  let rest = text;
  while (rest !== '') {
    const [step, name] = nextStep(rest) ?? [];
    if (step === undefined || name === undefined) return undefined;
    rest = rest.slice(step.length);
    const at: JsonSchema = current;
    const { properties, additionalProperties: values } = at;
    if (properties === undefined && typeof values !== 'object') return undefined;
    if (properties !== undefined) path += path === '' ? name : `.${name}`;
    else path += `[${name}]`;
    current = properties !== undefined ? declaredField(at, name) : (values as JsonSchema);
    if (!current) return undefined;
  }
  return path;
}

function nextStep(text: string): readonly [step: string, name: string] | undefined {
  const field = /^\.([^.[\]]+)/.exec(text);
  if (field) return [field[0], field[1] ?? ''];
  const quoted = /^\['((?:[^'\\]|\\[abfnrtv'\\])*)'\]/.exec(text);
  return quoted ? [quoted[0], unescape(quoted[1] ?? '')] : undefined;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function unescape(text: string): string {
  return text.replace(/\\(.)/g, (_, letter: string) => ESCAPES[letter] ?? letter);
}
