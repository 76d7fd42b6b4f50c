import { utf8Length } from '../util/bytes.ts';
import { parseWordyDuration } from '../util/go-duration.ts';
import { isIP } from '../util/ip-address.ts';
import { quantityProblem } from './quantity.ts';
import { parseGoTime } from './go-time.ts';
import type { JsonSchema } from './json-schema.ts';

/**
 * Returns the format of `schema` if it is validated. A format that is unknown or belongs to another
 * type is documentation.
 */
export function checkedFormat(schema: JsonSchema): string | undefined {
  const { format, type } = schema;
  if (!format) return undefined;
  if (schema['x-kubernetes-int-or-string']) return undefined;
  switch (type) {
    case undefined:
    case '':
    case 'string':
      return checkOf(format) ? format : undefined;
    case 'integer':
      return format === 'int32' || format === 'int64' ? format : undefined;
    case 'number':
      return format === 'float' || format === 'double' ? format : undefined;
    default:
      return undefined;
  }
}

/** Whether `text` has `format`; true for an unknown format. */
export function hasFormat(format: string, text: string): boolean {
  return checkOf(format)?.(text) ?? true;
}

/** Returns the check of a format of texts, or undefined if it is unknown. Its name may contain dashes: `date-time`. */
export function checkOf(format: string): ((text: string) => boolean) | undefined {
  return STRING_FORMATS.get(format) ?? STRING_FORMATS.get(format.replaceAll('-', ''));
}

/** Format of Go's type for quantities. It has the name of the type, which no CRD uses. */
export const QUANTITY = 'resource.Quantity';

/** Formats of Go's types for times, with their names. */
export const TIME = 'meta.v1.Time';
export const MICRO_TIME = 'meta.v1.MicroTime';

const SHORT_NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const NAME_SEGMENT = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/;
/** 6, 8 or 20 bytes in the forms of Go: `00:00`, `00-00`, `0000.0000` and digits alone. */
const MAC =
  /^(?:[0-9a-f]{2}([:-])(?:[0-9a-f]{2}\1){4}(?:(?:[0-9a-f]{2}\1){2}(?:(?:[0-9a-f]{2}\1){12})?)?[0-9a-f]{2}|(?:[0-9a-f]{4}\.){2}(?:[0-9a-f]{4}\.(?:(?:[0-9a-f]{4}\.){6})?)?[0-9a-f]{4}|[0-9a-f]{12}|[0-9a-f]{16}|[0-9a-f]{40})$/i;
const HEX_UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/**
 * Checks by format name without dashes, and by the frequent name `date-time`. Each check takes time
 * linear in the text.
 */
const STRING_FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ['bsonobjectid', (text) => /^[0-9a-f]{24}$/i.test(text)],
  ['byte', isBase64],
  ['cidr', isCidr],
  ['creditcard', isCreditCard],
  ['date', isDate],
  ['date-time', isDateTime],
  ['datetime', isDateTime],
  ['duration', (text) => parseWordyDuration(text) !== undefined],
  ['email', isEmail],
  ['hexcolor', (text) => /^#?(?:[0-9a-f]{3}|[0-9a-f]{6})$/i.test(text)],
  ['hostname', isHostname],
  ['ipv4', (text) => text.includes('.') && sloppyIpVersion(text) !== 0],
  ['ipv6', (text) => !text.includes('%') && isIP(text) === 6],
  [QUANTITY, (text) => quantityProblem(text) === undefined],
  [TIME, (text) => typeof parseGoTime(text, 'seconds') === 'object'],
  [MICRO_TIME, (text) => typeof parseGoTime(text, 'micros') === 'object'],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  [
    'k8slongname',
    (text) => text.length <= 253 && text.split('.').every((s) => NAME_SEGMENT.test(s)),
  ],
  ['k8sshortname', (text) => SHORT_NAME.test(text)],
  ['mac', (text) => MAC.test(text)],
  ['password', () => true],
  ['rgbcolor', isRgbColor],
  ['ssn', (text) => /^\d{3}[- ]\d{2}[- ]\d{4}$/.test(text)],
  ['uri', isUri],
  ['uuid', (text) => HEX_UUID.test(text)],
  ['uuid3', (text) => isUuid(text, '3')],
  ['uuid4', (text) => isUuid(text, '4') && hasRfcVariant(text)],
  ['uuid5', (text) => isUuid(text, '5') && hasRfcVariant(text)],
]);

function isUuid(text: string, version: string): boolean {
  return HEX_UUID.test(text) && text.replaceAll('-', '')[12] === version;
}

function hasRfcVariant(text: string): boolean {
  return /[89ab]/i.test(text.replaceAll('-', '')[16] ?? '');
}

function isBase64(text: string): boolean {
  return text !== '' && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
}

/** Version of an IP address whose numbers may have leading zeros, as before Go 1.17; 0 if it is none. */
function sloppyIpVersion(text: string): number {
  if (text.includes('%')) return 0;
  return isIP(text.replaceAll(/(?<=^|[.:])0+(?=[\da-f])/gi, ''));
}

function isCidr(text: string): boolean {
  const slash = text.indexOf('/');
  if (slash < 0) return false;
  const version = sloppyIpVersion(text.slice(0, slash));
  const bits = text.slice(slash + 1);
  return version !== 0 && /^0*\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}

function isDate(text: string): boolean {
  if (!/^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])$/.test(text)) return false;
  // Every month has 28 days; the others depend on month and year.
  const day = Number(text.slice(8));
  return day <= 28 || day <= daysOf(Number(text.slice(0, 4)), Number(text.slice(5, 7)));
}

/** Number of days of a month of the Gregorian calendar; January is 1. */
function daysOf(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

/** Text after a second T is ignored, and the fraction starts with any character, as upstream. */
const DATE_TIME =
  /^\d{4}-\d{2}-\d{2}[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})(?:$|[Tt])/;

function isDateTime(text: string): boolean {
  return DATE_TIME.test(text) && isDate(text.slice(0, 10));
}

const ATOM = String.raw`[^\s"(),.:;<>@[\\\]\0-\x1f\x7f]+`;
const QUOTED = String.raw`"(?:[^"\\\0-\x08\n-\x1f\x7f]|\\[^\0-\x08\n-\x1f\x7f])+"`;
const DOT_ATOM = String.raw`${ATOM}(?:\.${ATOM})*`;
const ADDRESS = new RegExp(
  String.raw`^[ \t]*(?:${QUOTED}|${DOT_ATOM})@[ \t]*(?:${DOT_ATOM}|\[([^[\]\s]*)\])[ \t]*$`,
);
const DISPLAY_NAME = new RegExp(String.raw`^(?:${QUOTED}|[^"(),:;<>@[\\\]\0-\x08\n-\x1f\x7f])*$`);

/** The domain can be an IP address in brackets. */
function isAddress(text: string): boolean {
  const [found, literal] = ADDRESS.exec(text) ?? [];
  return found !== undefined && (literal === undefined || isIP(literal) !== 0);
}

/** An address as in mail, such as `Ann <ann@example.com>`, without comments. */
function isEmail(text: string): boolean {
  if (!text.trimEnd().endsWith('>')) return isAddress(text);
  const start = text.lastIndexOf('<');
  const address = text.slice(start + 1, text.lastIndexOf('>'));
  return start >= 0 && DISPLAY_NAME.test(text.slice(0, start)) && isAddress(address);
}

/** A single label has at most one dash, its second character, as upstream's expression. */
const HOSTNAME =
  /^(?:[a-zA-Z0-9\p{S}\p{L}]-?[a-zA-Z0-9\p{S}\p{L}]{0,62}|(?:[a-zA-Z0-9\p{S}\p{L}](?:[-a-zA-Z0-9\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?\.)+[a-zA-Z\p{L}]{2,63})$/u;

function isHostname(text: string): boolean {
  if (utf8Length(text) > 255 || !HOSTNAME.test(text)) return false;
  return text.split('.').every((label) => utf8Length(label) <= 63);
}

const ESCAPES_ONLY = /^(?:[^%]|%[\da-f]{2})*$/i;
const AUTHORITY =
  /^(?:(?:[\w.~!$&'()*+,;=:@-]|%[\da-f]{2})*@)?(?:\[([^\]]*)\](?::\d*)?|([^\s%#?\\^`{|}[\]@]*))$/i;

/** A URI in a request, as Go parses it: absolute or a path. */
function isUri(text: string): boolean {
  if (text === '*') return true;
  if (text === '' || /[^\P{Cc}\x80-\x9f]/u.test(text)) return false;
  const scheme = /^[a-z][a-z\d+.-]*:/i.exec(text)?.[0] ?? '';
  const [rest = ''] = text.slice(scheme.length).split('?', 1);
  if (!rest.startsWith('/')) return scheme !== '';
  if (scheme === '' || !rest.startsWith('//')) return ESCAPES_ONLY.test(rest);
  const end = rest.indexOf('/', 2);
  const authority = end < 0 ? rest.slice(2) : rest.slice(2, end);
  const host = AUTHORITY.exec(authority);
  if (!host || (end >= 0 && !ESCAPES_ONLY.test(rest.slice(end)))) return false;
  // Lists of hosts can have ports, but not in these schemes.
  const [, ...ports] = host[2]?.split(':') ?? [];
  if (!/^\d*$/.test(ports.at(-1) ?? '')) return false;
  if (ports.length > 1 && /^https?:$/i.test(scheme)) return false;
  return host[1] === undefined || isIP(host[1].replace('%25', '%')) === 6;
}

const RGB_COLOR =
  /^rgb\(\s{0,9}(\d{1,3})\s{0,9},\s{0,9}(\d{1,3})\s{0,9},\s{0,9}(\d{1,3})\s{0,9}\)$/;

function isRgbColor(text: string): boolean {
  const parts = RGB_COLOR.exec(text)?.slice(1) ?? [];
  // Numbers with leading zeros are refused.
  return (
    parts.length > 0 && parts.every((part) => String(Number(part)) === part && Number(part) <= 255)
  );
}

function isIsbn10(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const sum = Array.from(digits).reduce(
    (total, digit, index) => total + (10 - index) * (digit === 'X' ? 10 : Number(digit)),
    0,
  );
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replaceAll(/[\s-]/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = Array.from(digits).reduce(
    (total, digit, index) => total + (index % 2 === 0 ? 1 : 3) * Number(digit),
    0,
  );
  return sum % 10 === 0;
}

/** Issuers that upstream knows. */
const CARD_NUMBER =
  /^(?:4\d{12}(?:\d{3})?|5[1-5]\d{14}|6(?:011|5\d\d)\d{12}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|(?:2131|1800|35\d{3})\d{11})$/;

function isCreditCard(text: string): boolean {
  const digits = text.replaceAll(/\D/g, '');
  if (!CARD_NUMBER.test(digits)) return false;
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = Number(digits[digits.length - 1 - index]);
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}
