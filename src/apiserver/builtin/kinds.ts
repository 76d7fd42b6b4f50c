import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { CERTIFICATE_SIGNING_REQUEST } from './certificates.ts';
import { builtinKinds } from './definition.ts';
import { TRAITS } from './traits.ts';

/** Every kind that the server serves without a CRD. */
export const BUILTIN_KINDS: readonly ResourceDefinition[] = builtinKinds({
  ...TRAITS,
  'certificates.k8s.io/certificatesigningrequests': CERTIFICATE_SIGNING_REQUEST,
});
