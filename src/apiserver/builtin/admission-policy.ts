import { equalJson } from '../../api/equal.ts';
import type { Expression } from '../admission/expressions.ts';
import { Environment } from '../admission/expressions.ts';
import type { StoredObject } from '../resource-definition.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../schema/json-value.ts';
import type { KindTraits } from './definition.ts';
import { isSet, objectIn, objectsIn, textIn } from './fields.ts';
import { Findings } from './findings.ts';

/** Defaults of the `MatchResources` at a path. */
function matchDefaults(path: string): Readonly<Record<string, unknown>> {
  return {
    [`${path}.matchPolicy`]: 'Equivalent',
    [`${path}.namespaceSelector`]: {},
    [`${path}.objectSelector`]: {},
    [`${path}.resourceRules[].scope`]: '*',
    [`${path}.excludeResourceRules[].scope`]: '*',
  };
}

const TRAITS = { tracksGeneration: true, unconditionalUpdate: false } satisfies KindTraits;

export const ADMISSION_POLICY: KindTraits = {
  ...TRAITS,
  hooks: { validate },
  defaults: { 'spec.failurePolicy': 'Fail', ...matchDefaults('spec.matchConstraints') },
};

export const POLICY_BINDING: KindTraits = {
  ...TRAITS,
  defaults: matchDefaults('spec.matchResources'),
};

/** Reports expressions that are missing or do not compile. Those of an unchanged spec were checked before. */
function validate(policy: StoredObject, previous: StoredObject | undefined): readonly FieldError[] {
  const findings = new Findings();
  const spec = objectIn(policy, 'spec') ?? {};
  if (previous && equalJson(spec, previous['spec'])) return [];
  const environment = new Environment(isSet(spec, 'paramKind'));
  const check = (
    list: string,
    field: string,
    compile: (source: string, item: JsonObject) => Expression,
  ) => {
    for (const [index, item] of objectsIn(spec, list).entries()) {
      const path = `spec.${list}[${index}].${field}`;
      const source = textIn(item, field);
      if (source.trim() === '') {
        if (field !== 'messageExpression') findings.required(path, 'expression is not specified');
        continue;
      }
      const { compiled } = compile(source, item);
      if ('error' in compiled) findings.invalid(path, source, compiled.error);
    }
  };
  check('variables', 'expression', (source, item) =>
    environment.declare(textIn(item, 'name'), source),
  );
  check('matchConditions', 'expression', (source) => environment.compile(source, 'bool'));
  check('validations', 'expression', (source) => environment.compile(source, 'bool'));
  check('validations', 'messageExpression', (source) => environment.compile(source, 'string'));
  check('auditAnnotations', 'valueExpression', (source) => environment.compile(source, 'any'));
  if (policy.kind === 'ValidatingAdmissionPolicy') {
    if (!isSet(spec, 'matchConstraints')) findings.required('spec.matchConstraints');
    const lists = ['validations', 'auditAnnotations'] as const;
    if (lists.every((list) => objectsIn(spec, list).length === 0)) {
      const why = 'validations or auditAnnotations must contain at least one item';
      for (const list of lists) findings.required(`spec.${list}`, why);
    }
  }
  return findings.errors;
}
