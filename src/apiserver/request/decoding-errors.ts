import { messageTypeOf } from '../protobuf/decode-message.ts';
import { textOrJson } from '../json/go-json.ts';
import { apiVersionIn } from './negotiation.ts';
import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { fieldError } from '../../api/field-error.ts';
import { goJson } from '../../util/go-format.ts';
import { goQuote } from '../../util/go-quote.ts';
import { isRecord } from '../../util/values.ts';
import { badRequest, invalidError } from '../objects/status-error.ts';

/** Returns the 400 for a body that is no object of a kind, with the kind and version that it has. */
export function cannotBeHandled(
  definition: ResourceDefinition,
  why: string,
  sent: Readonly<Record<string, unknown>> = {},
): Error {
  const { kind } = definition;
  const apiVersion =
    sent['apiVersion'] === null ? '' : textOrJson(sent['apiVersion'] || apiVersionIn(definition));
  const version = goQuote(apiVersion.split('/').at(-1) ?? '');
  const sentKind = textOrJson(sent['kind'] || kind);
  return badRequest(`${sentKind} in version ${version} cannot be handled as a ${kind}: ${why}`);
}

/** Returns the 422 for a patch whose result is not an object of its kind. */
export function unprocessablePatch(
  { custom }: Pick<ResourceDefinition, 'custom'>,
  patched: unknown,
  why: string,
): Error {
  return invalidPatch(custom ? goJson(patched) : patchedText(patched), why);
}

export function invalidPatch(shown: string, why: string): Error {
  return invalidError({ group: '', kind: '' }, '', [fieldError.invalid('patch', shown, why)]);
}

/** Encodes the result of a patch of a built-in kind: sorted, but metadata has the order of Go's struct. */
function patchedText(patched: unknown): string {
  if (!isRecord(patched) || !isRecord(patched['metadata'])) return goJson(patched);
  const { metadata } = patched;
  const ordered = [...messageTypeOf('meta.v1.ObjectMeta').fields.values()]
    .map(({ name = '' }) => name)
    .filter((name) => metadata[name] !== undefined)
    .map((name) => `${JSON.stringify(name)}:${goJson(metadata[name])}`);
  const members = Object.keys(patched)
    .sort()
    .map((name) => {
      const text = name === 'metadata' ? `{${ordered.join(',')}}` : goJson(patched[name]);
      return `${JSON.stringify(name)}:${text}`;
    });
  return `{${members.join(',')}}`;
}
