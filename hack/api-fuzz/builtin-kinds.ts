/** All built-in kinds with the fields of their schemas. */
import { BUILTIN_KINDS } from '../../src/apiserver/builtin/kinds.ts';
import type { Sample } from '../../test/conformance/builtin-objects.ts';
import { SAMPLES } from '../../test/conformance/builtin-objects.ts';
import type { FuzzKind } from './kinds.ts';
import { SchemaValues } from './schema-values.ts';

/** Kinds whose objects affect other sequences, or whose names are fixed: they are written in dry runs only. */
const DRY_RUNS =
  /admissionregistration|apiregistration|flowcontrol|namespaces|limitranges|resourcequotas|priorityclasses/;

export const BUILTIN_FUZZ_KINDS: readonly FuzzKind[] = SAMPLES.map(kindOf);

function kindOf(sample: Sample): FuzzKind {
  const { resource, kind, cluster = false, valid } = sample;
  const [plural = '', ...groupVersion] = resource.split('/').reverse();
  const apiVersion = groupVersion.reverse().join('/');
  const definition = BUILTIN_KINDS.find(
    ({ group, version, plural: name }) =>
      name === plural && apiVersion === (group ? `${group}/${version}` : version),
  );
  if (!definition) throw new Error(`There is no built-in kind ${resource}`);
  const {
    apiVersion: _,
    kind: __,
    metadata: ___,
    status,
    ...others
  } = definition.schema?.properties ?? {};
  const schema = { properties: { ...others, ...(status && { status }) } };
  const subresources = (['status', 'scale'] as const).filter(
    (name) => definition.subresources?.[name],
  );
  const base = JSON.parse(JSON.stringify(valid).replaceAll('NAMESPACE', '$ns'));
  const isDryRun = DRY_RUNS.test(resource);
  return {
    apiVersion,
    kind,
    resource: plural,
    base,
    schema,
    fields: [],
    change: (choices, part) => {
      if (choices.chance(0.15)) return undefined;
      const isStatus = part === '/status' && status !== undefined && choices.chance(0.7);
      return new SchemaValues(choices).change(isStatus ? { properties: { status } } : schema, base);
    },
    isClusterScoped: cluster,
    isDryRun,
    ...(cluster && { names: isDryRun ? [sample.name ?? 'sample'] : ['$ns-a', '$ns-a', '$ns-b'] }),
    ...(subresources.length > 0 && { subresources }),
  };
}
