import { typedText } from '../../../api/field-error.ts';
import { utf8Length } from '../../../util/bytes.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';

const HEALTH = ['Healthy', 'Unhealthy', 'Unknown'];
const MAX_MESSAGE_BYTES = 1024;

const NO_CLAIM =
  "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty";

/** Validates the health of the resources of a container, in its status. */
export function validateResourceHealth(
  container: CheckedObject,
  containers: readonly CheckedObject[],
  status: CheckedObject,
): void {
  const known = containers.find((each) => each.text('name') === container.text('name'));
  for (const resource of container.items('allocatedResourcesStatus')) {
    // As upstream, which ignores a container that is not in the spec.
    if (known) requireAllocated(resource, known, status);
    const ids = new Set<string>();
    for (const part of resource.items('resources')) {
      if (!HEALTH.includes(part.text('health'))) {
        part.notSupported('health', HEALTH, part.text('health'));
      }
      if (part.has('message')) requireMessage(part);
      const id = part.text('resourceID');
      if (ids.has(id)) part.duplicate('resourceID', typedText(id));
      ids.add(id);
    }
  }
}

function requireMessage(part: CheckedObject): void {
  const length = utf8Length(part.text('message'));
  if (length === 0) part.required('message', 'must be non-empty if specified');
  else if (length > MAX_MESSAGE_BYTES) part.tooLong('message', MAX_MESSAGE_BYTES);
}

/** A resource is one that the container requests or claims. */
function requireAllocated(
  resource: CheckedObject,
  container: CheckedObject,
  status: CheckedObject,
): void {
  const name = resource.text('name');
  const { value: requests } = container.in('resources').in('requests');
  if (!name.startsWith('claim:')) {
    if (Object.hasOwn(requests, name)) return;
    const why = "must match one of the container's resource requests";
    resource.invalid('name', why, typedText(name));
    return;
  }
  const claims = container
    .in('resources')
    .items('claims')
    .map((claim) => {
      const request = claim.text('request');
      return `claim:${claim.text('name')}${request === '' ? '' : `/${request}`}`;
    });
  const extended = status.in('extendedResourceClaimStatus');
  const ofExtended = extended
    .items('requestMappings')
    .filter(
      (mapping) =>
        mapping.text('containerName') === container.text('name') &&
        Object.hasOwn(requests, mapping.text('resourceName')) &&
        requests[mapping.text('resourceName')] !== '0',
    )
    .map((mapping) => `claim:${extended.text('resourceClaimName')}/${mapping.text('requestName')}`);
  if (![...claims, ...ofExtended].includes(name))
    resource.invalid('name', NO_CLAIM, typedText(name));
}
