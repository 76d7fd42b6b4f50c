import type { Difference } from './compare.ts';
import { describe } from './compare.ts';

/** Differences that remain on purpose, by an expression for their description. */
const ACCEPTED: readonly (readonly [pattern: RegExp, reason: string])[] = [
  [
    /\.(?:items|rows|rules) null$|"rules":null/m,
    'Go writes an empty list without omitempty as null',
  ],
  [/^## \S+ roles .*managedFields/, 'owners of an empty list'],
  [/\(\*v1\.Scale\)/, 'the Go type of the Scale of a custom resource'],
  [/[?&]timeoutSeconds=-1/, 'a watch that ends at once may have an event before'],
  [/\/scale[? ][^]*managedFields/, 'owners of replicas that a Scale does not change or sets to 0'],
  [
    /^## \S+ (?:gadgets|widgets|customresourcedefinitions) .*422\/422 .*causes[^]*"metadata\./,
    'errors in metadata are repeated',
  ],
  [/^## \S+ gadgets .*metadata\.generation/, 'defaults of a version that is not stored'],
  [/unknown field \\+"spec\\+"/, 'unknown fields of an object of another version'],
  [/failed to allocate IP: IPAddress/, 'an address is allocated before the name is validated'],
  [/^## \S+ leases .*400\/400 \.body\.message/, 'a malformed time is reported before other values'],
  [/^## \S+ jobs .*resourceVersion/, 'the first update of a Job stores its default labels'],
  [/^## PATCH \S+ .*apply 20\d\/20\d .*managedFields/, 'owners after applies, and their times'],
  [
    /^## .*(?:scale|gadgets|widgets).*(?:managedFields|resourceVersion)/,
    'owners of other versions, of a Scale, and after a malformed status',
  ],
  [
    /^## .* services.*(?:managedFields|resourceVersion)/,
    'addresses and node ports of an update belong to its manager',
  ],
  [
    /^## \S+ services (?:status )?.*404\/|^## \S+ services status/,
    'a Service cannot be created by its status',
  ],
  [
    /^## \S+ customresourcedefinitions .*(?:managedFields|generateName|deletionGrace|details\.kind)/,
    'the status of a CRD has no owner',
  ],
  [/customresourcedefinitions .*\.status\.conditions/, 'Go writes an absent list as null'],
  [/lastProbeTime|lastTransitionTime|lastUpdateTime/, 'Go writes the zero time as null'],
  [/apiVersion":5|Go struct field \.apiVersion/, 'an apiVersion that is no text'],
  [/of type v1\.[A-Z]\w+"|to v1\.[A-Z]\w+"/, 'Go has names for types of strings'],
  [/number \d+\.\d+ into/, 'fractions are not shown'],
  [/field (?:Preconditions|DeleteOptions)/, 'the struct of a precondition'],
  [
    /\\"(?:Type|Spec|Strategy|Containers|Name|Volumes)\\":|Invalid value: null: `selector`|Invalid value: (?:null|OBJECT)/,
    'values in messages are JSON, not Go',
  ],
  [/a valid label key must consist of/, 'malformed keys of label selectors have a shorter message'],
  [/evaluating rule: |accessor error/, 'rules are not evaluated on invalid objects'],
  [
    /no kind is registered for the type v1\.Scale|failed to convert new object|unknown conversion/,
    'errors that upstream does not intend',
  ],
  [/^## .* 422\/404 |^## .* 404\/400 |^## .* 400\/404 /, 'the order of checks of a missing object'],
  [/^## PATCH .* (?:422|500)\/(?:500|422) /, 'the code of an apply of malformed values'],
  [/^## .* 403\/422 |^## .* 422\/403 /, 'the order of checks while a CRD is deleted'],
  [
    /request to convert CR to an invalid/,
    'an apply of a Scale of an object without owners succeeds',
  ],
  [/^## PATCH \S+ apply 400\/400 /, 'the order of checks of name and namespace'],
  [/Object 'Kind' is missing/, 'the message of a custom resource without a kind'],
  [
    /expected any scalar/,
    'a value that is neither integer nor string does not fit the schema of an apply',
  ],
  [/^## PATCH \S+ json 400\/422/, 'a patch that removes the name and has malformed values'],
  [/x{64}/, 'names that are too long are reported without their labels'],
  [/may not change once set|must be a valid IP address/, 'the address of a Service in messages'],
];

/** Returns why a difference is accepted, or undefined. */
export function acceptedReason(difference: Difference): string | undefined {
  const text = describe(difference);
  return ACCEPTED.find(([pattern]) => pattern.test(text))?.[1];
}
