import type { JsonObject } from '../../../util/json-value.ts';
import { listIn, objectIn, objectsIn, setDefault, textIn } from '../../../util/json-value.ts';
import type { CustomResourceDefinition } from '../../../api/builtin.ts';
import type { ApiObject } from '../../objects/resource-definition.ts';
import { CREATED_AT_COLUMN, NAME_COLUMN, WIDE, column, field, wide } from '../../table/column.ts';
import { crdWarnings } from './crd-warnings.ts';
import type { BuiltinKind } from '../shared/builtin-kind.ts';

const crdColumn = column<CustomResourceDefinition>;

const wideCrdColumn = wide<CustomResourceDefinition>;

/** The kind of CRDs. `withCrdRules` adds their validation, and `CrdLifecycle` serves the kinds that they define. */
export const CUSTOM_RESOURCE_DEFINITION: BuiltinKind = {
  resource: 'apiextensions.k8s.io/customresourcedefinitions',
  tracksGeneration: true,
  unconditionalUpdate: false,
  hooks: { applyDefaults, prepareForCreate },
  columns: [
    NAME_COLUMN,
    field('Scope', 'spec.scope'),
    crdColumn('Versions', 'Served versions.', ({ spec }) =>
      spec.versions
        .filter(({ served }) => served)
        .map(({ name, storage }) => (storage ? `${name}(storage)` : name))
        .sort()
        .join(),
    ),
    CREATED_AT_COLUMN,
    field('Group', 'spec.group', '', WIDE),
    field('Kind', 'spec.names.kind', '', WIDE),
    wideCrdColumn('ShortNames', 'Short names.', ({ spec }) => (spec.names.shortNames ?? []).join()),
    wideCrdColumn(
      'Established',
      'Whether the objects are served.',
      ({ status }) =>
        status?.conditions?.some(
          ({ type, status: value }) => type === 'Established' && value === 'True',
        ) ?? false,
      { type: 'boolean' },
    ),
  ],
  warnings: crdWarnings,
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
  const status = objectIn(definition, 'status');
  if (status && listIn(status, 'storedVersions').length === 0) {
    status['storedVersions'] = storageVersions(spec);
  }
}

function prepareForCreate(definition: ApiObject): void {
  definition['status'] = {
    conditions: null,
    acceptedNames: { plural: '', kind: '' },
    storedVersions: storageVersions(objectIn(definition, 'spec')),
  };
}

function storageVersions(spec: JsonObject | undefined): string[] {
  const stored = objectsIn(spec, 'versions').find(({ storage }) => storage === true);
  return stored ? [textIn(stored, 'name')] : [];
}
