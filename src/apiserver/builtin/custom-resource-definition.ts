import { objectIn, objectsIn, setDefault, textIn } from '../../util/json-value.ts';
import type { ApiObject } from '../objects/resource-definition.ts';
import type { KindTraits } from './definition.ts';

/** The kind that defines kinds. What it validates and establishes is added by who serves them. */
export const CUSTOM_RESOURCE_DEFINITION: KindTraits = {
  tracksGeneration: true,
  unconditionalUpdate: false,
  hooks: { applyDefaults, prepareForCreate },
};

function applyDefaults(definition: ApiObject): void {
  const spec = objectIn(definition, 'spec');
  if (!spec) return;
  const names = objectIn(spec, 'names');
  if (names) {
    const kind = textIn(names, 'kind');
    setDefault(names, 'singular', kind.toLowerCase());
    if (kind !== '') setDefault(names, 'listKind', `${kind}List`);
  }
  setDefault(spec, 'conversion', { strategy: 'None' });
  const service = objectIn(
    objectIn(objectIn(objectIn(spec, 'conversion'), 'webhook'), 'clientConfig'),
    'service',
  );
  if (service) setDefault(service, 'port', 443);
}

function prepareForCreate(definition: ApiObject): void {
  const versions = objectsIn(objectIn(definition, 'spec'), 'versions');
  const stored = versions.find(({ storage }) => storage === true);
  definition['status'] = {
    conditions: null,
    acceptedNames: { plural: '', kind: '' },
    storedVersions: stored ? [textIn(stored, 'name')] : [],
  };
}
