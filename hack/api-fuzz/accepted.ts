import type { Difference } from './compare.ts';
import { describe } from './compare.ts';

/** Differences that remain on purpose, by an expression for their description. */
const ACCEPTED: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [/^## \S+ roles.*(?:rules|managedFields)/, 'Go writes a list without omitempty as null'],
  [/^## \S+ services\/.*\/status|services status/, 'a Service cannot be created by its status'],
  [
    /^## PATCH \S+ {2}apply \S+ \.body.*managedFields/,
    'owners after applies of metadata.generation',
  ],
  [/^## .* 20\d\/20\d \.warning/, 'built-in kinds have few warnings'],
  [/^## .* leases .*(?:renewTime)/s, 'times with microseconds may have none'],
  [
    /no kind is registered for the type v1\.Scale/,
    'Scales of custom resources have the message of others',
  ],
  [/failed to convert new object/, 'an apply of malformed text is a 422 instead of a 500'],
  [/unknown conversion/, 'a known kind in the wrong place has the message of an unknown kind'],
  [/of type v1\.[A-Z]\w+"/, 'Go has names for types of strings'],
  [
    /\\"Type\\":|Invalid value: null: `selector`|spec\.template: Invalid value/,
    'values in messages are JSON, not Go',
  ],
  [/a valid label key must consist of/, 'malformed keys of label selectors have a shorter message'],
  [/associative list with keys has an element/, 'keys of lists have no default'],
  [/evaluating rule: |accessor error/, 'rules are not evaluated on invalid objects'],
  [/x{64}/, 'names that are too long are reported without their labels'],
];

/** Returns why a difference is accepted, or undefined. */
export function acceptedReason(difference: Difference): string | undefined {
  const text = describe(difference);
  return ACCEPTED.find(([pattern]) => pattern.test(text))?.[1];
}
