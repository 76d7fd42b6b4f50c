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
  [
    /^## \S+ jobs.*(?:status|restartPolicy)/s,
    'the status and the restart policy of a Job are not validated further',
  ],
  [/\/scale.*managedFields/s, 'owners of 0 replicas, and of an apply of a Scale'],
  [/^## PUT widgets scale .*warning/, 'unknown fields of a Scale of a missing object'],
  [
    /request to convert CR to an invalid/,
    'an apply of a Scale of an object without owners succeeds',
  ],
  [/^## \S+ widgets.*(?:\/status|"status":\{).*managedFields/s, 'owners after a malformed status'],
  [/^## PATCH .* apply 20\d.*generation$/m, 'an apply ignores metadata.generation'],
  [/^## PATCH .* apply 201\/500/, 'a malformed resourceVersion in an apply that creates'],
  [/error decoding from json/, 'malformed base64 in a strategic merge patch has a shorter message'],
  [/cpu":"x"/, 'a malformed quantity in a patch is reported by its field'],
  [
    /expected any scalar/,
    'a value that is neither integer nor string does not fit the schema of an apply',
  ],
  [/^## PATCH \S+ {2}json 400\/422/, 'a patch that removes the name and has malformed values'],
  [/x{64}/, 'names that are too long are reported without their labels'],
];

/** Returns why a difference is accepted, or undefined. */
export function acceptedReason(difference: Difference): string | undefined {
  const text = describe(difference);
  return ACCEPTED.find(([pattern]) => pattern.test(text))?.[1];
}
