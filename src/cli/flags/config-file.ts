import { readFileSync } from 'node:fs';
import { parseDocuments } from '../../client/apply/manifest-yaml.ts';
import type { ManifestDocument } from '../../client/apply/manifest-yaml.ts';
import { goQuote } from '../../util/go-quote.ts';
import { isRecord } from '../../util/values.ts';
import { didYouMean } from '../../util/did-you-mean.ts';
import { pathError, UsageError } from '../common/errors.ts';
import { CONFIG_FLAG, FlagSetting } from './flag-parser.ts';
import type { FlagSettings } from './flag-parser.ts';
import type { Option, Options } from './option.ts';

export const CONFIG_API_VERSION = 'crd-controller.example.io/v1alpha1';
const CONFIG_KIND = 'ControllerConfiguration';

/** Returns the field of a flag in a configuration file: `kubeApiQps` for `kube-api-qps`. */
function settingName(flag: string): string {
  return flag.replaceAll(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the options that a configuration file can set, by field. */
export function settingsOf(options: Options): Map<string, [flag: string, option: Option<unknown>]> {
  return new Map(
    Object.entries(options)
      .filter(([flag, { flagOnly }]) => !flagOnly && flag !== CONFIG_FLAG)
      .map(([flag, option]) => [settingName(flag), [flag, option]]),
  );
}

/**
 * Reads a configuration file and returns its settings by flag. Unknown fields are errors, because a
 * misspelled setting would have no effect.
 *
 * @throws {UsageError} naming the file, the line and the field
 */
export function readConfigFile(path: string, options: Options): FlagSettings {
  const fields = settingsOf(options);
  const { document, members } = onlyObject(path, textOf(path));
  const settings: Record<string, FlagSetting[]> = {};
  for (const [field, value] of members) {
    if (field === 'apiVersion' || field === 'kind') continue;
    const place = `${path}:${document.lineAt([field]) ?? document.line}`;
    const found = fields.get(field);
    if (!found) {
      const hint = didYouMean(field, [...fields.keys(), 'apiVersion', 'kind']);
      throw new UsageError(`${place}: unknown field ${goQuote(field)}${hint}`);
    }
    const [flag, option] = found;
    const text = textIn(value, option, `${place}: ${field}`);
    settings[flag] = [new FlagSetting(`${field} in ${place}`, text)];
  }
  return settings;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw pathError(`cannot read the configuration file ${path}`, error);
  }
}

type ParsedDocument = Extract<ManifestDocument, { readonly kind: 'parsed' }>;

function onlyObject(
  path: string,
  text: string,
): { document: ParsedDocument; members: [string, unknown][] } {
  const [document, second] = parseDocuments(text);
  if (!document) throw new UsageError(`${path}: the file is empty; ${EXPECTED}`);
  if (document.kind === 'malformed') {
    throw new UsageError(`${path}:${document.line}:${document.column}: ${document.message}`);
  }
  if (second) throw new UsageError(`${path}:${second.line}: found a second document; ${EXPECTED}`);
  const { value, line } = document;
  if (!isRecord(value)) throw new UsageError(`${path}:${line}: found no object; ${EXPECTED}`);
  const members = Object.entries(value);
  for (const [field, wanted] of [
    ['apiVersion', CONFIG_API_VERSION],
    ['kind', CONFIG_KIND],
  ] as const) {
    const [, found] = members.find(([name]) => name === field) ?? [];
    if (found === wanted) continue;
    const at = document.lineAt([field]) ?? line;
    const got = typeof found === 'string' ? `, got ${goQuote(found)}` : '';
    throw new UsageError(`${path}:${at}: ${field}: must be ${goQuote(wanted)}${got}`);
  }
  return { document, members };
}

const EXPECTED = `expected one ${CONFIG_KIND} of ${CONFIG_API_VERSION}`;

/**
 * Returns the value of a field in the syntax of its flag.
 *
 * @throws {UsageError} on a value of another type
 */
function textIn(value: unknown, { type }: Option<unknown>, field: string): string {
  const wrong = (expected: string) => new UsageError(`${field}: must be ${expected}`);
  switch (type) {
    case 'text':
      if (typeof value !== 'string') throw wrong('a string; quote it');
      return value;
    case 'boolean':
      if (typeof value !== 'boolean') throw wrong('true or false');
      return String(value);
    case 'integer':
      if (typeof value !== 'bigint') throw wrong('a whole number');
      return String(value);
    case 'list': {
      const expected = 'a list of strings that are not empty and contain no comma';
      if (!Array.isArray(value)) throw wrong(expected);
      const elements: readonly unknown[] = value;
      for (const element of elements) {
        if (typeof element !== 'string' || !/^[^,]+$/.test(element)) throw wrong(expected);
      }
      return elements.join(',');
    }
    case 'switches': {
      const expected = 'an object whose values are true or false';
      if (!isRecord(value)) throw wrong(expected);
      return Object.entries(value)
        .map(([name, isOn]) => {
          if (typeof isOn !== 'boolean') throw wrong(expected);
          return `${name}=${isOn}`;
        })
        .join(',');
    }
  }
}
