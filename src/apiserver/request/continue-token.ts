import { fromBase64, latin1Text, toBase64Url, utf8Text } from '../../util/bytes.ts';
import { inspectJson } from '../json/go-json.ts';
import { base64Problem } from './unmarshal-problem.ts';
import { badRequest } from '../objects/status-error.ts';

/** The position of the next page of a list. */
export interface ContinuePoint {
  /** Revision of the list; undefined for the current state. */
  readonly revision: number | undefined;
  /** Storage key of the last object of the previous page. */
  readonly after: string;
}

const TOKEN_VERSION = 'meta.k8s.io/v1';

/** Encodes a continue token in upstream's format. It is opaque to clients. */
export function continueToken({ revision, after }: ContinuePoint): string {
  const token = { v: TOKEN_VERSION, rv: revision ?? -1, start: `${after}\u0000` };
  return toBase64Url(JSON.stringify(token));
}

/** @throws {StatusError} 400 if the token is malformed */
export function continueAt(token: string): ContinuePoint {
  const { v, rv, start } = decode(token);
  if (v !== TOKEN_VERSION) {
    throw invalidToken(`server does not recognize this encoded version ${shown(v)}`);
  }
  if (typeof start !== 'string' || !Number.isSafeInteger(rv)) {
    throw invalidToken('incorrect encoded start resourceVersion');
  }
  const revision = Number(rv);
  return { revision: revision > 0 ? revision : undefined, after: start.replace(/\0$/, '') };
}

function decode(token: string): { v?: unknown; rv?: unknown; start?: unknown } {
  if (/[^\w-]/.test(token) || token.length % 4 === 1) {
    throw invalidToken(base64Problem(token.replace(/_/g, '/').replace(/-/g, '+')));
  }
  const bytes = fromBase64(token);
  try {
    const value: unknown = JSON.parse(utf8Text(bytes));
    return typeof value === 'object' && value !== null ? value : {};
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    // Go reports a byte, also one that is only a part of a character.
    throw invalidToken(inspectJson(latin1Text(bytes)).problem ?? cause.message);
  }
}

function invalidToken(why: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${why}`);
}

function shown(version: unknown): string {
  return typeof version === 'string' ? version : '';
}
