import { nameProblems } from '../../../api/object-names.ts';
import { utf8Length } from '../../../util/bytes.ts';
import { goJson } from '../../../util/go-format.ts';
import { isRecord, repeatedIndexes } from '../../../util/values.ts';
import type { CheckedObject } from '../../objects/checked-object.ts';
import { requireDriverName } from '../pods/volume-sources.ts';
import {
  requireQualifiedProperty,
  validateDeclaredToleration,
  validateTolerationValue,
} from './device-names.ts';

const MAX_ITEMS = 32;
const MAX_EXPRESSION = 10 * 1024;
/** In bytes. */
const MAX_PARAMETERS = 10 * 1024;

/** Names of requests with those of their alternatives. */
export type RequestNames = ReadonlyMap<string, ReadonlySet<string>>;

export function requestNamesOf(devices: CheckedObject): RequestNames {
  const textsOf = (items: readonly CheckedObject[]) => items.map((item) => item.text('name'));
  return new Map(
    devices
      .items('requests')
      .map((request) => [request.text('name'), new Set(textsOf(request.items('firstAvailable')))]),
  );
}

/** Reports what is wrong with the devices of a claim. */
export function validateDeviceClaim(devices: CheckedObject): void {
  const requests = devices.requireAtMost('requests', MAX_ITEMS) ? devices.items('requests') : [];
  requireDistinct(requests);
  for (const request of requests) validateRequest(request);
  const names = requestNamesOf(devices);
  const isFew = devices.requireAtMost('constraints', MAX_ITEMS);
  for (const constraint of isFew ? devices.items('constraints') : []) {
    validateReferences(constraint, names);
    const attributes = ['distinctAttribute', 'matchAttribute'].filter((field) =>
      constraint.has(field),
    );
    for (const field of attributes) requireQualifiedProperty(constraint, field);
    if (attributes.length === 0) {
      const why =
        'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set';
      constraint.required('', why);
    }
  }
  validateConfigurations(devices, names);
}

/** Names are unique; the whole item is the duplicate. */
function requireDistinct(items: readonly CheckedObject[]): void {
  const names = new Set<string>();
  for (const item of items) {
    const name = item.text('name');
    item.problems('name', nameProblems(name, 'dns1123Label'), name);
    if (names.has(name)) item.duplicate('', item.value);
    names.add(name);
  }
}

function validateRequest(request: CheckedObject): void {
  const exactly = request.get('exactly');
  const alternatives = request.items('firstAvailable');
  const why = 'exactly one of `exactly` or `firstAvailable` is required';
  if (exactly) validateDeclared(exactly);
  const isFew = request.requireAtMost('firstAvailable', 8);
  for (const alternative of isFew ? alternatives : []) {
    alternative.requireName('deviceClassName', 'dns1123Subdomain', 'bytes');
    validateDeclared(alternative);
  }
  if (!exactly && alternatives.length === 0) request.required('', why);
  else if (exactly && alternatives.length > 0) {
    request.invalid('', `${why}, but multiple fields are set`, null);
  } else if (exactly) {
    exactly.requireName('deviceClassName', 'dns1123Subdomain');
    validateDetails(exactly);
  } else if (isFew) {
    requireDistinct(alternatives);
    for (const alternative of alternatives) validateDetails(alternative);
  }
}

/** The declared rules, which upstream checks also in a request that must be absent. */
function validateDeclared(request: CheckedObject): void {
  request.requireOneOf('allocationMode', ['All', 'ExactCount']);
  for (const toleration of request.items('tolerations')) {
    validateDeclaredToleration(toleration);
  }
}

function validateDetails(request: CheckedObject): void {
  validateSelectors(request);
  const [mode, count] = [request.text('allocationMode'), request.number('count') ?? 0];
  if (mode === 'All' && count !== 0) {
    request.invalid('count', "must not be specified when allocationMode is 'All'");
  } else if (mode === 'ExactCount' && count <= 0) {
    request.invalid('count', 'must be greater than zero', count);
  }
  for (const toleration of request.items('tolerations')) validateTolerationValue(toleration);
}

/** Expressions are not compiled, because the server allocates no devices. */
export function validateSelectors(holder: CheckedObject): void {
  if (!holder.requireAtMost('selectors', MAX_ITEMS)) return;
  for (const selector of holder.items('selectors')) {
    const cel = selector.get('cel');
    if (!cel) selector.required('cel');
    else if (cel.text('expression').length > MAX_EXPRESSION) {
      cel.tooLong('expression', MAX_EXPRESSION);
    }
  }
}

/** @param names the requests that a configuration may be for; a class has none */
export function validateConfigurations(
  holder: CheckedObject,
  names?: RequestNames,
  max: number = MAX_ITEMS,
): void {
  if (!holder.requireAtMost('config', max)) return;
  for (const config of holder.items('config')) {
    // Only that of an allocation has a source.
    if (max > MAX_ITEMS) {
      config.requireText('source');
      config.requireOneOf('source', ['FromClaim', 'FromClass']);
    }
    if (names) validateReferences(config, names);
    const opaque = config.get('opaque');
    if (!opaque) config.required('opaque');
    else {
      requireDriverName(opaque, 'driver', 'dns1123SubdomainCaseless');
      requireParameters(opaque, 'parameters');
    }
  }
}

/** Parameters that a driver reads are an object of at most 10 KiB. */
export function requireParameters(
  holder: CheckedObject,
  field: string,
  isRequired: boolean = true,
): void {
  const { [field]: parameters } = holder.value;
  if (!holder.has(field)) {
    if (isRequired) holder.required(field);
  } else if (utf8Length(goJson(parameters)) > MAX_PARAMETERS) holder.tooLong(field, MAX_PARAMETERS);
  else if (!isRecord(parameters)) {
    holder.invalid(field, 'must be a valid JSON object', '<value omitted>');
  }
}

function validateReferences(holder: CheckedObject, names: RequestNames): void {
  holder.requireAtMost('requests', MAX_ITEMS);
  const references = holder.list('requests').map(String);
  const repeated = repeatedIndexes(references);
  for (const [index, reference] of references.entries()) {
    validateRequestReference(holder, `requests[${index}]`, reference, names);
    if (repeated.has(index)) holder.duplicate(`requests[${index}]`, reference);
  }
}

/** A reference is the name of a request, or one with that of an alternative. */
export function validateRequestReference(
  holder: CheckedObject,
  field: string,
  reference: string,
  names: RequestNames,
): void {
  const parts = reference.split('/');
  const why =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
  if (parts.length <= 2) {
    for (const part of parts) holder.problems(field, nameProblems(part, 'dns1123Label'), part);
  }
  const [request = '', alternative] = parts;
  const alternatives = names.get(request);
  const isKnown = alternative === undefined || alternatives?.has(alternative) === true;
  if (parts.length > 2 || !alternatives || !isKnown) holder.invalid(field, why, reference);
}
