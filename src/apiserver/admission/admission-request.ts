import type { ResourceDefinition } from '../objects/resource-definition.ts';
import type { Attributes } from './attributes.ts';
import type { Match } from './matching.ts';
import { userInfo } from '../../api/user.ts';

/** Returns the fields of an AdmissionRequest, without its uid and its objects. */
export function admissionRequest(attributes: Attributes, match: Match): Record<string, unknown> {
  const { definition, kind, subresource, name, namespace, operation } = attributes;
  const { user, dryRun, options } = attributes;
  return {
    kind: kindOf(attributes, match),
    resource: resourceOf(match),
    ...(subresource && { subResource: subresource }),
    requestKind: pickKind(kind),
    requestResource: resourceOf(definition),
    ...(subresource && { requestSubResource: subresource }),
    ...(name && { name }),
    ...(namespace && { namespace }),
    operation,
    userInfo: userInfo(user),
    dryRun,
    options,
  };
}

/** The kind in the version of the match; a subresource keeps the kind of its objects. */
export function kindOf({ kind, definition }: Attributes, match: Match): Attributes['kind'] {
  return pickKind(kind === definition ? match : kind);
}

function pickKind({ group, version, kind }: Attributes['kind']): Attributes['kind'] {
  return { group, version, kind };
}

function resourceOf({ group, version, plural }: ResourceDefinition): object {
  return { group, version, resource: plural };
}
