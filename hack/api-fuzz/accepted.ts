import type { Difference } from './compare.ts';
import { describe } from './compare.ts';

/** Differences that remain on purpose, by an expression for the description of their last request and its responses. */
const ACCEPTED: readonly (readonly [pattern: RegExp, reason: string])[] = [
  // Accidents of upstream that no client depends on.
  [/^## WATCH .*[?&]timeoutSeconds=-1/s, 'a watch that ends at once may have an event before'],
  [
    /^## \S+ roles .*(?:\.rules|resourceVersion|managedFields)/,
    'an empty list of rules is [] or null by what was stored before',
  ],
  [
    /^## \S+ jobs .*(?:resourceVersion|metadata\.labels)/,
    'a Job has its default labels when it is read, and stores them at the first update',
  ],
  [
    /^## \S+ (?:limitranges|horizontalpodautoscalers) .*(?:limits$|f:metrics)/m,
    'an empty list is null, and a rounded amount another one, by what was stored before',
  ],
  [
    /^## \S+ gadgets .*(?:metadata\.generation|resourceVersion|managedFields)|^## WATCH gadgets events \.#$/m,
    'the first update in another version stores the defaults of the stored version; owners by a Scale',
  ],
  [
    /^## \S+ configmaps .*"binaryData":\{\}/s,
    'an empty map changes an immutable ConfigMap without that map',
  ],
  [/request to convert CR to an invalid/, 'an apply of a Scale without owners fails'],
  [
    /no kind is registered for the type v1\.Scale|unknown conversion|\(\*v1\.Scale\)/,
    'errors that upstream does not intend',
  ],
  [/field not declared in schema/, 'upstream stops at such a field, in random order'],
  [
    /failed to allocate IP: IPAddress|with invalid DNS label: -0/,
    'a Service or an Indexed Job without a name has another error besides',
  ],
  [/^## .* scale .*columnDefinitions/, 'the Scale of a custom resource has columns like one'],
  [
    /^## \S+ (?:widgets|gadgets) .*"manager":"m4"/s,
    'managed fields of a custom resource in a version of another group',
  ],
  [
    /^## PATCH (?:events|poddisruptionbudgets) apply .*parsing time/s,
    'upstream reports the first of two invalid times',
  ],
  [
    /^## \S+ events .*metadata\.managedFields\[0\]/s,
    'upstream validates the metadata of an Event if its other fields are valid',
  ],
  [
    /^## .*"aggregationRule"|^## GET clusterroles .*resourceVersion/s,
    'this server aggregates ClusterRoles without a controller',
  ],
  [
    /^## (?:\S+ daemonsets .*as=(?:Table|Partial).*|WATCH daemonsets events .*)annotations/m,
    'the internal DaemonSet, of which tables, metadata and bookmarks are made, has a field for its annotation',
  ],
  [
    /^## PATCH \S+ strategic-merge .*creationTimestamp":"[^"]*\.\d/s,
    'a fraction of a second is a change of a template, although it is not stored',
  ],
  [
    /^## PATCH persistentvolumeclaims .*apply .*resourceVersion/,
    'the second apply of a claim that an apply created is a write',
  ],
  [
    /^## \S+ resourceclaim\w* .*Duplicate value: \{/s,
    'the order of members in messages, with defaults',
  ],
  [/^## .*vac-protection/s, 'without a controller that removes it'],
  [/^## .*storageHealth/s, 'managed fields of, and statuses with, fields that are off'],
  [
    /^## .*f:volumeClaimTemplates/,
    'an amount in another form than the stored one makes the templates of claims a change',
  ],
  [/^## .*(?:deviceclasses|resourceclaim\w*) .*cel\.expression/s, 'CEL of devices is not compiled'],
  [
    /^## .* = (?:\[\]|\{\})$/m,
    'an empty list or map of Go is an absent one before it is validated',
  ],
  [/^## .*managedFields\.0\.fieldsV1 = /, 'no managers of an object with such raw data'],
  [/^## .*exactly\.adminAccess = /, 'admin access is checked in a claim that is valid'],
  [/ownerReferences":\[null\]/, 'zero values of owners in a template'],
  [
    /^## PATCH validatingadmissionpolicies status apply .*404\/(?:201|406|500)/,
    'an apply of the status creates such a policy, but no object of another kind',
  ],
  [/^## PATCH \S+ strategic-merge 500\/0 /, 'a handler of upstream panics'],
  // Texts of messages.
  [/^## \S+ events .*\*core\.Event/s, 'names of the kind that is stored'],
  [/Syntax error: /, 'the parser of CEL expects other tokens'],
  [
    /\\"(?:Type|Spec|Strategy|Containers|Name|Volumes)\\":|Invalid value: (?:null|OBJECT|\{\}): `selector`/,
    'values in messages are JSON, not Go',
  ],
  [
    /preserveUnknownFields|is an invalid path|\.subresources\.scale\./,
    'errors in CRDs that have others too, and texts about their paths',
  ],
  [/^## \S+ \S+ yaml .*Object 'Kind' is missing/s, 'the message has the JSON of a YAML body'],
  [/^## \S+ jobs .*x{64}/s, 'the long name of a Job is reported again for its labels'],
];

/** Returns why a difference is accepted, or undefined. */
export function acceptedReason(difference: Difference): string | undefined {
  // The request of a watch is before the requests that cause its events.
  const isWatch = difference.signature.startsWith('WATCH');
  const requests = isWatch ? difference.requests : difference.requests.slice(-1);
  const text = describe({ ...difference, requests });
  return ACCEPTED.find(([pattern]) => pattern.test(text))?.[1];
}
