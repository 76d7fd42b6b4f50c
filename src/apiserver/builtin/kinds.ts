import type { ResourceDefinition } from '../objects/resource-definition.ts';
import { builtinKinds } from './definition.ts';
import { NODE_KINDS } from './generated/node-kinds.ts';
import { PORTABLE_KINDS } from './generated/portable-kinds.ts';

/** Every kind that the server serves without a CRD. */
export const BUILTIN_KINDS: readonly ResourceDefinition[] = builtinKinds([
  ...PORTABLE_KINDS,
  ...NODE_KINDS,
]);
