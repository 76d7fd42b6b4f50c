import { createHash } from 'node:crypto';

/** The longest label value that a server accepts. */
const LONGEST = 63;

/**
 * `name` as a label value: itself if it fits, else its beginning and a hash of the whole, so that
 * two long names that begin alike stay apart. Object names have up to 253 characters.
 */
export function labelValue(name: string): string {
  if (name.length <= LONGEST) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, 10);
  return `${name.slice(0, LONGEST - hash.length - 1).replace(/[^A-Za-z0-9]+$/, '')}-${hash}`;
}
